"""Program: workload traces against the engine that schedules pods, offline."""
