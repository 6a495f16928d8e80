"""What the machine is and what it can do: `device_report`, `peaks` and `roofline`."""
