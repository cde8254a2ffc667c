"""Optional bridges to other libraries, each behind an extra and imported only when asked for."""
