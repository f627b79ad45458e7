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
# What goes wrong: never answers; answers once; ends after the first answer; answers late, and
# tells of tokens meanwhile, as behind a queue.
parser.add_argument("--fault", default="", choices=("", "deaf", "tired", "mortal", "busy"))
given, _ = parser.parse_known_args()
weights = given.model / "model.safetensors"
answers, looks = [], []


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        looks.append(self.path)
        count = len(looks) if given.fault == "busy" else 7
        lines = [f'vllm:generation_tokens_total{{engine="0"}} {count}.0', "vllm:other_total x"]
        self.send_response(200)
        self.end_headers()
        self.wfile.write("\n".join(lines).encode() if self.path == "/metrics" else b"")

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if given.fault == "deaf" or (given.fault == "tired" and answers):
            time.sleep(600)
        if given.fault == "busy" and answers:
            time.sleep(4)
        if given.fault == "mortal" and answers:
            os._exit(5)
        answers.append(body)
        text = weights.read_text() if weights.is_file() else "base"
        is_known = body["model"] in given.served_model_name
        reply = {"choices": [{"message": {"content": text}, "finish_reason": "stop"}]}
        payload = json.dumps(reply if is_known else {"error": "no such model"}).encode()
        self.send_response(200 if is_known else 404)
        self.send_header("Content-Length", str(len(payload)))
        self.end_headers()
        self.wfile.write(payload)

    def log_message(self, format, *args):
        pass


sys.stdout.write(f"pid {os.getpid()}\n")
sys.stdout.flush()
ThreadingHTTPServer((given.host, given.port), Handler).serve_forever()
