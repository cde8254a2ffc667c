"""Optional bridges to other libraries, each behind an extra and imported on first use."""
