"""Program: replays workload traces offline, through the engine that schedules pods."""
