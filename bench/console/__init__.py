"""The console on a large cluster: what its API and its pages take, and what they ask of the brokers."""
