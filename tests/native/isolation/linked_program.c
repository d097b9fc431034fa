/* A program that is linked with a library that is linked with the driver. */
int linked(void);

int main(void) {
    return linked();
}
