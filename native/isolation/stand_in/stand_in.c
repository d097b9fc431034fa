/* A library without code. It has the name of a library of the driver, so that programs load it
 * instead. It needs (DT_NEEDED) first the limiter and then the driver's real file: programs find
 * the hooks of the limiter in it, and everything else in the driver. */
typedef int nothing;
