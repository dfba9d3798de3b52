"""Gives the Python wheel xllamacpp the command line of llama.cpp's own llama-server."""
import argparse
import os
import signal
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "site"))

parser = argparse.ArgumentParser(prog="llama-server")
parser.add_argument("--version", action="store_true")
parser.add_argument("-m", "--model")
parser.add_argument("-a", "--alias")
parser.add_argument("--host", default="127.0.0.1")
parser.add_argument("--port", type=int, default=8080)
parser.add_argument("-c", "--ctx-size", type=int, default=0)
parser.add_argument("-np", "--parallel", type=int, default=1)
parser.add_argument("-t", "--threads", type=int, default=0)
parser.add_argument("-ngl", "--gpu-layers", type=int)
parser.add_argument("--metrics", action="store_true")
parser.add_argument("--slots", action="store_true")
parser.add_argument("--jinja", action="store_true")
parser.add_argument("--embeddings", "--embedding", action="store_true")
parser.add_argument("-b", "--batch-size", type=int)
parser.add_argument("-ub", "--ubatch-size", type=int)
parser.add_argument("--api-key")
options = parser.parse_args()

import xllamacpp  # noqa: E402  (the path is set above)

if not options.version and not options.model:
    parser.error("--model is required: give the path of a GGUF file")
if options.version:
    print("version: xllamacpp", xllamacpp.__version__)
    sys.exit(0)

params = xllamacpp.CommonParams()
params.model.path = options.model
if options.alias:
    params.model_alias = {options.alias}
params.hostnames = [options.host]
params.port = options.port
params.n_ctx = options.ctx_size
params.n_parallel = options.parallel
if options.threads > 0:
    params.cpuparams.n_threads = options.threads
    params.cpuparams_batch.n_threads = options.threads
if options.gpu_layers is not None:
    params.n_gpu_layers = options.gpu_layers
params.endpoint_metrics = options.metrics
params.endpoint_slots = options.slots
params.use_jinja = options.jinja
if options.embeddings:
    params.embedding = True
if options.batch_size is not None:
    params.n_batch = options.batch_size
if options.ubatch_size is not None:
    params.n_ubatch = options.ubatch_size
if options.api_key:
    params.api_keys = [options.api_key]


def leave(_signal, _frame):
    # The server has no orderly stop of its own that ends within a second; connections close with the process.
    os._exit(0)


signal.signal(signal.SIGTERM, leave)
signal.signal(signal.SIGINT, leave)
server = xllamacpp.Server(params)
print("listening on", server.listening_address, flush=True)
while True:
    signal.pause()
