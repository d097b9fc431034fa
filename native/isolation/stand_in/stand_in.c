/* Nothing of its own. By its name it stands where a program looks for the driver; by what it needs
 * it leads first to the limiter and then to the driver's real file, in which everything is found
 * that the limiter does not have. */
typedef int nothing;
