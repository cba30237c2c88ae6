"""What the tests share: a world to fill, servers to start, conditions to wait for."""
