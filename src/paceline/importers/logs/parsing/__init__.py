"""Line parsing, rates, clocks and checks that all log readers share."""
