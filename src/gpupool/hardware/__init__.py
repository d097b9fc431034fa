"""GPUs: the NVIDIA driver, the simulated driver, and the limiter."""
