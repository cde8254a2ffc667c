"""`python llama_cpp_process.py GGUF ALIAS PARALLEL`: llama.cpp's server; prints its address, then serves.

It ends when standard input closes, which happens when the test process ends, however it ends.
"""

import sys

import xllamacpp


def main(gguf: str, alias: str, parallel: int) -> None:
    params = xllamacpp.CommonParams()
    params.model.path = gguf
    params.model_alias = {alias}
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.n_parallel = parallel
    params.n_ctx = 4096 * parallel
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 2
    params.verbosity = 0
    server = xllamacpp.Server(params)
    sys.stdout.write(f"{server.listening_address}\n")
    sys.stdout.flush()
    sys.stdin.read()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
