"""Answers every chat with the weights that it serves, as a chat server does."""

import argparse
import json
import os
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

parser = argparse.ArgumentParser()
parser.add_argument("--model", type=Path)
parser.add_argument("--served-model-name", nargs="+")
parser.add_argument("--host")
parser.add_argument("--port", type=int)
# What goes wrong: never answers; ends at the first question after it answered.
parser.add_argument("--fault", default="", choices=("", "deaf", "mortal"))
given, _ = parser.parse_known_args()
weights = given.model / "model.safetensors"


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        if given.fault == "deaf":
            time.sleep(600)
        self.send_response(200)
        self.end_headers()

    def do_POST(self):
        if given.fault == "mortal":
            os._exit(5)
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        assert body["model"] in given.served_model_name
        text = weights.read_text() if weights.is_file() else "base"
        reply = {"choices": [{"message": {"content": text}, "finish_reason": "stop"}]}
        payload = json.dumps(reply).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(payload)))
        self.end_headers()
        self.wfile.write(payload)

    def log_message(self, format, *args):
        pass


sys.stdout.write(f"pid {os.getpid()}\n")
sys.stdout.flush()
ThreadingHTTPServer((given.host, given.port), Handler).serve_forever()
