#!/usr/bin/env python3
"""A server of files that fails on purpose, for tests/source/fetch_test.c.

    file_server.py DIR [CERT KEY]

Prints its port. With a certificate it speaks HTTPS. The first part of a path says how it behaves; the rest names a file of DIR.
"""
import http.server
import os
import re
import ssl
import sys


class Handler(http.server.BaseHTTPRequestHandler):
    requests = {}  # of each path so far

    def log_message(self, *args):
        pass

    def do_GET(self):
        _, how, name = self.path.split("?")[0].split("/", 2)
        n = self.requests[self.path] = self.requests.get(self.path, 0) + 1
        if how == "gone" or (how == "busy" and n <= 2):
            self.send_error(404 if how == "gone" else 503)
            return
        if how == "redirect":
            self.send_response(302)
            self.send_header("Location", "/good/" + name)
            self.end_headers()
            return
        try:
            with open(os.path.join(sys.argv[1], name), "rb") as f:
                data = f.read()
        except FileNotFoundError:
            self.send_error(404)
            return
        self.send_file(how, n, data)

    def send_file(self, how, n, data):
        tag = '"%d"' % (n if how == "changing" else 1)
        asked = re.match(r"bytes=(\d+)-$", self.headers.get("Range", ""))
        same = self.headers.get("If-Range") == tag
        first = int(asked.group(1)) if asked and how != "norange" and (same or how == "wrong") else 0
        if first and how == "wrong":
            first += 7
        self.send_response(206 if first else 200)
        if first:
            self.send_header("Content-Range", "bytes %d-%d/%d" % (first, len(data) - 1, len(data)))
        if how != "novalidator":
            self.send_header("ETag", tag)
        self.send_header("Content-Length", str(len(data) - first))
        self.end_headers()
        stops = {"cut": True, "novalidator": n == 1, "norange": n == 1, "changing": n <= 2,
                 "wrong": n == 1, "silent": True}
        left = data[first:]
        if how == "silent":
            left = b""
        elif stops.get(how) and len(left) > 1000:
            left = left[: len(left) // 2]
        self.wfile.write(left)


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
server.handle_error = lambda *args: None  # a client that refuses the certificate
if len(sys.argv) > 2:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(sys.argv[2], sys.argv[3])
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
os.write(1, b"%d\n" % server.server_address[1])  # at once
server.serve_forever()
