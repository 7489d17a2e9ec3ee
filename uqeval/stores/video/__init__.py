"""Videos: frames, their order, and stored optical flow."""
