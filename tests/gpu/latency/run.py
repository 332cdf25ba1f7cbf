#!/usr/bin/env python3
"""Runs what make.py built on a GPU: run.py [DIR|DIR.tar.gz] [--out FOLDER] [--only REGEX] [--limit SECONDS]

Needs python3 and libcuda.so.1 (LATENCY_CUDA names another library). Writes FOLDER/latency.json and latency.txt (default $OUT or .).
One child process holds the GPU and streams results; one that fails or is silent too long is replaced, and only its measurement is lost.
"""
import argparse, ctypes as C, json, os, re, select, signal, struct, subprocess, sys, tarfile, tempfile, time

CHASE, FLUSH = 8 << 20, 128 << 20
RUNS = 5


class Cuda:
    def __init__(self):
        self.l = C.CDLL(os.environ.get("LATENCY_CUDA", "libcuda.so.1"))
        self.call("cuInit", 0)
        dev, ctx = C.c_int(), C.c_void_p()
        self.call("cuDeviceGet", C.byref(dev), 0)
        self.call("cuDevicePrimaryCtxRetain", C.byref(ctx), dev)
        self.call("cuCtxSetCurrent", ctx)
        name = C.create_string_buffer(100)
        self.call("cuDeviceGetName", name, 100, dev)
        self.name = name.value.decode()

        def attribute(which):
            v = C.c_int()
            self.call("cuDeviceGetAttribute", C.byref(v), which, dev)
            return v.value
        self.info = dict(name=self.name, clock_khz=attribute(13), sms=attribute(16), l2=attribute(38), cc=[attribute(75), attribute(76)])

    def call(self, name, *args):
        r = getattr(self.l, name)(*args)
        if r:
            raise RuntimeError(f"{name}: error {r}")

    def alloc(self, n):
        p = C.c_uint64()
        self.call("cuMemAlloc_v2", C.byref(p), C.c_size_t(n))
        return p.value

    def write(self, at, data):
        self.call("cuMemcpyHtoD_v2", C.c_uint64(at), data, C.c_size_t(len(data)))

    def set(self, at, n):
        self.call("cuMemsetD8_v2", C.c_uint64(at), C.c_ubyte(0), C.c_size_t(n))

    def load(self, image):
        m = C.c_void_p()
        self.call("cuModuleLoadData", C.byref(m), C.c_char_p(image))
        return m

    def unload(self, m):
        self.call("cuModuleUnload", m)

    def function(self, m, name):
        f = C.c_void_p()
        self.call("cuModuleGetFunction", C.byref(f), m, name.encode())
        return f


class Bench:
    def __init__(self, folder):
        self.cuda, self.folder = Cuda(), folder
        c = self.cuda
        self.input, self.out, self.chase, self.flush = c.alloc(1 << 16), c.alloc(1 << 15), c.alloc(CHASE), c.alloc(FLUSH)
        c.write(self.input, open(os.path.join(folder, "in.bin"), "rb").read())

    def chains(self, kind):
        """Contents of the buffer of pointers."""
        self.cuda.set(self.chase, CHASE)
        if kind == "l1":
            self.cuda.write(self.chase, struct.pack("<Q", self.chase))
        if kind in ("l2", "dram"):
            stride, b = 8064, bytearray(4 << 20)
            for r in range(4):
                for k in range(129):
                    at = (r << 20) + k * stride
                    struct.pack_into("<Q", b, at, self.chase + (r << 20) + (k + 1) * stride)
            self.cuda.write(self.chase, bytes(b))

    def launch(self, f, threads, n, flush=False):
        """Cycles from the first clock to the last, and the result words."""
        c = self.cuda
        if flush:
            c.set(self.flush, FLUSH)
        args = [C.c_uint64(self.input), C.c_uint64(self.out), C.c_uint64(self.chase), C.c_uint32(n)]
        ptrs = (C.c_void_p * 4)(*[C.cast(C.byref(a), C.c_void_p) for a in args])
        c.call("cuLaunchKernel", f, 1, 1, 1, threads, 1, 1, 0, None, ptrs, None)
        c.call("cuCtxSynchronize")
        b = (C.c_uint64 * (threads * 4))()
        c.call("cuMemcpyDtoH_v2", b, C.c_uint64(self.out), C.c_size_t(threads * 32))
        w = list(b)
        return max(w[1::4]) - min(w[0::4]), [x & 0xffffffff for x in w[2::4]]

    def measure(self, e):
        r = dict(name=e["name"], at={}, error={})
        results = {}
        for who, path in e["cubins"].items():
            image = open(os.path.join(self.folder, path), "rb").read()
            self.chains(e["buf"])
            m = self.cuda.load(image)
            fs = [self.cuda.function(m, k) for k in (("k1", "k1") if e["loop"] else ("k1", "k2"))]
            ns = e["n"] if e["loop"] else (3, 3)
            for threads in e["threads"]:
                ts, words = [], []
                for f, n in zip(fs, ns):
                    got = [self.launch(f, threads, n, e["buf"] == "dram") for _ in range(RUNS)]
                    ts.append(sorted(t for t, _ in got[1:]))
                    words.append(got[-1][1])
                u = e["units"][who]
                warps = max(1, threads // 32)
                per = max(1, warps / 4) if e["kind"] == "tput" else 1
                slope = (ts[1][0] - ts[0][0]) / max(1, u[1] - u[0]) / per
                r["at"].setdefault(str(threads), {})[who] = dict(cycles=round(slope, 3) if u[1] != u[0] else None, t=[ts[0][0], ts[1][0]], spread=[ts[0][-1] - ts[0][0], ts[1][-1] - ts[1][0]])
                results[who, threads] = words
            self.cuda.unload(m)
        if e["same"] and len(e["cubins"]) == 2:
            bad = [t for t in e["threads"] if results["ptxas", t] != results["ours", t]]
            r["results"] = "equal" if not bad else f"DIFFER at {bad}"
        return r

    def stalls(self, e):
        """The least stall of a pair at which the result stays right, in the ptxas cubin."""
        image = open(os.path.join(self.folder, e["cubins"]["ptxas"]), "rb").read()

        def run(data):
            m = self.cuda.load(bytes(data))
            f = self.cuda.function(m, "k1")
            self.chains(e["buf"])
            n = e["n"][0] if e["loop"] else 3
            got = [self.launch(f, e["threads"][0], n) for _ in range(2)]
            self.cuda.unload(m)
            return got
        right = run(image)[-1][1]
        out = []
        for s in e["stall"]:
            tries = {}
            for total in range(len(s["offs"][0]), max(s["now"]) + 1):
                b = bytearray(image)
                for chain in s["offs"]:
                    left = total
                    for j, at in enumerate(chain):
                        take = min(15, left - (len(chain) - 1 - j))
                        left -= take
                        hi, = struct.unpack_from("<Q", b, at + 8)
                        struct.pack_into("<Q", b, at + 8, hi & ~(15 << 41) | take << 41)
                got = run(b)
                tries[total] = all(words == right for _, words in got)
            least = None
            for total in sorted(tries, reverse=True):
                if not tries[total]:
                    break
                least = total
            out.append(dict(pair=s["pair"], ptxas=s["now"], least_right=least, right_at=[t for t in tries if tries[t]], wrong_at=[t for t in tries if not tries[t]]))
        return dict(name=e["name"], stall=out)


def child(folder, names):
    say = lambda o: (sys.stdout.write(json.dumps(o) + "\n"), sys.stdout.flush())
    entries = {e["name"]: e for e in json.load(open(os.path.join(folder, "manifest.json")))}
    b = Bench(folder)
    say(dict(info=b.cuda.info))
    for task in names:
        kind, name = task.split(":")
        say(dict(start=task))
        try:
            say(dict(done=task, got=(b.measure if kind == "m" else b.stalls)(entries[name])))
        except RuntimeError as error:
            say(dict(failed=task, error=str(error)))
            return      # the context is lost


def parent(folder, a):
    begin = time.time()
    entries = [e for e in json.load(open(os.path.join(folder, "manifest.json"))) if re.search(a.only, e["name"])]
    todo = ["m:" + e["name"] for e in entries if e["cubins"]] + ["s:" + e["name"] for e in entries if e["stall"]]
    got, failed, info, empty = {}, {}, {}, 0
    while todo and time.time() - begin < a.limit and empty < 3:
        env = dict(os.environ)
        env["LATENCY_TASKS"] = json.dumps(todo)
        log = tempfile.TemporaryFile()
        p = subprocess.Popen([sys.executable, os.path.abspath(__file__), folder, "--child"], stdout=subprocess.PIPE, stderr=log, env=env)
        buf, last, now, progress, eof = b"", time.time(), None, False, False
        fd = p.stdout.fileno()
        while True:
            patience = a.patience if progress or now else 12
            ready = select.select([fd], [], [], 0.2)[0]
            if ready:
                more = os.read(fd, 1 << 16)
                if not more:
                    eof = True
                    break
                last, buf = time.time(), buf + more
                while b"\n" in buf:
                    line, buf = buf.split(b"\n", 1)
                    o = json.loads(line)
                    if "info" in o:
                        info = o["info"]
                    elif "start" in o:
                        now = o["start"]
                    else:
                        task = o.get("done") or o["failed"]
                        todo.remove(task)
                        now, progress = None, True
                        if "done" in o:
                            got[task] = o["got"]
                        else:
                            failed[task] = o["error"]
            if time.time() - last > patience or time.time() - begin > a.limit:
                break
        if not eof:
            p.kill()
        try:
            code = p.wait(3)
        except subprocess.TimeoutExpired:
            code = "stuck"
        log.seek(0)
        if now:
            failed[now] = f"hung or died (exit {code}) " + log.read().decode(errors="replace")[-300:] if time.time() - begin < a.limit else "time over"
            todo.remove(now)
        elif not progress:
            empty += 1
            failed["start"] = f"exit {code}: " + log.read().decode(errors="replace")[-500:]
    report(entries, got, failed, todo, info, time.time() - begin, a)


def report(entries, got, failed, todo, info, wall, a):
    lines = [f"GPU: {info}", f"wall {wall:.1f} s; {len(got)} done, {len(failed)} failed, {len(todo)} not begun", "",
             f"{'name':24} {'opcode':14} {'thr':>4} {'ptxas':>8} {'ours':>8} {'table':>6}  notes"]
    n = lambda v: "-" if v is None else f"{v:.2f}"
    rows = []
    for e in entries:
        r = got.get("m:" + e["name"])
        if not r:
            continue
        for threads, at in r["at"].items():
            p, o = (at.get(k, {}).get("cycles") for k in ("ptxas", "ours"))
            notes = []
            if p and e["value"] and abs(p - e["value"]) > 0.12 * e["value"] and e["kind"] != "bar":
                notes.append("TABLE")
            if p and o and o > 1.04 * p:
                notes.append(f"ours {o / p:.2f}x")
            if p and o and p > 1.04 * o:
                notes.append(f"ptxas {p / o:.2f}x")
            if r.get("results", "equal") != "equal":
                notes.append("results " + r["results"])
            for who in at:
                if max(at[who]["spread"]) > 0.1 * max(at[who]["t"]):
                    notes.append(f"{who} noisy {at[who]['spread']}")
            if e["ops"].get("ptxas") != e["ops"].get("ours"):
                notes.append("sass differs")
            rows.append(dict(name=e["name"], opcode=e["op"], threads=int(threads), ptxas=p, ours=o, table=e["value"], row=e["table"], ops=e["ops"], units=e["units"], detail=at, notes=notes))
            lines.append(f"{e['name']:24} {e['op'][:14]:14} {threads:>4} {n(p):>8} {n(o):>8} {n(e['value']):>6}  {e['table']}; {' '.join(notes)}")
    lines += ["", "least stall at which the chain's result stays right (ptxas cubin, patched):", f"{'name':24} {'pair':24} {'ptxas has':>10} {'least':>6}  wrong at"]
    stalls = []
    for e in entries:
        r = got.get("s:" + e["name"])
        for s in (r or {}).get("stall", []):
            stalls.append(dict(name=e["name"], row=e["table"], **s))
            odd = "" if not s["least_right"] or all(t >= s["least_right"] for t in s["right_at"]) else f" (also right at {[t for t in s['right_at'] if t < s['least_right']]})"
            lines.append(f"{e['name']:24} {s['pair']:24} {str(s['ptxas']):>10} {str(s['least_right']):>6}  {s['wrong_at']}{odd}  {e['table']}")
    if failed or todo:
        lines += ["", "failed:"] + [f"{k}: {v}" for k, v in failed.items()] + ([f"not begun: {todo}"] if todo else [])
    text = "\n".join(lines) + "\n"
    sys.stdout.write(text if len(text) < 60000 else text[:60000])
    os.makedirs(a.out, exist_ok=True)
    json.dump(dict(gpu=info, wall=wall, rows=rows, stalls=stalls, failed=failed, not_begun=todo), open(os.path.join(a.out, "latency.json"), "w"), indent=1)
    open(os.path.join(a.out, "latency.txt"), "w").write(text)


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    p = argparse.ArgumentParser()
    p.add_argument("folder", nargs="?", default=None)
    p.add_argument("--child", action="store_true")
    p.add_argument("--out", default=os.environ.get("OUT", "."))
    p.add_argument("--only", default="")
    p.add_argument("--limit", type=float, default=25)
    p.add_argument("--patience", type=float, default=2.5)
    a = p.parse_args()
    folder = a.folder or next((q for q in (os.path.join(here, "latency"), os.path.join(here, "latency.tar.gz")) if os.path.exists(q)), None)
    if not folder:
        sys.exit("no folder 'latency' and no latency.tar.gz")
    if a.child:
        return child(folder, json.loads(os.environ["LATENCY_TASKS"]))
    if folder.endswith((".tar", ".tar.gz", ".tgz")):
        tmp = tempfile.mkdtemp()
        tarfile.open(folder).extractall(tmp, filter="data")
        folder = os.path.join(tmp, "latency")
    parent(folder, a)


if __name__ == "__main__":
    main()
