"""Where tasks come from: our own files, the published ColBench files, and later generators."""
