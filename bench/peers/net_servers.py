"""The servers of net.py: started on free loopback ports, with data in a temporary directory, ended by pid."""
import glob
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import time

E = os.environ
NOH = E.get("NOH", "out/plain/noh")
REDIS = E.get("REDIS") or shutil.which("redis-server") or ""
VALKEY = E.get("VALKEY", "")
PGBIN = E.get("PGBIN") or next(iter(sorted(glob.glob("/usr/lib/postgresql/*/bin"), reverse=True)), "")
TICK = os.sysconf("SC_CLK_TCK")
scratch = None
live = []


class Failed(Exception):
    pass


def use_scratch(path):
    global scratch
    scratch = path
    os.chmod(path, 0o755)           # PostgreSQL runs as a user of its own


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def need_noh():
    if subprocess.run([NOH, "bench", "load", "--help"], capture_output=True).returncode != 0:
        raise SystemExit(f"net.py: {NOH} is not there or has no bench load; make, or set NOH")


def can_serve():
    return subprocess.run([NOH, "serve", "--help"], capture_output=True).returncode == 0


def versions():
    def first(*command):
        try:
            return subprocess.run(command, capture_output=True, text=True).stdout.splitlines()[0].strip()
        except (OSError, IndexError):
            return None
    found = {"noh": first(NOH, "version"), "redis": first(REDIS, "--version") if REDIS else None,
             "valkey": first(VALKEY, "--version") if VALKEY else None,
             "postgresql": first(PGBIN + "/postgres", "--version") if PGBIN else None}
    return {k: re.sub(r" (malloc|bits|build|sha)=\S+", "", v) for k, v in found.items() if v}


def stat_of(pid):
    """(parent, ticks of its own, ticks of children it waited for)"""
    try:
        with open(f"/proc/{pid}/stat") as f:
            w = f.read().rsplit(")", 1)[1].split()
        return int(w[1]), int(w[11]) + int(w[12]), int(w[13]) + int(w[14])
    except (OSError, IndexError):
        return 0, 0, 0


def resp(port, *words, timeout=60):
    """One RESP command; the reply's text: a line, or a bulk string's body."""
    with socket.create_connection(("127.0.0.1", port), timeout=timeout) as s:
        return resp_on(s, s.makefile("rb"), *words)


def resp_on(s, f, *words):
    parts = [str(w).encode() for w in words]
    s.sendall(b"*%d\r\n" % len(parts) + b"".join(b"$%d\r\n%s\r\n" % (len(p), p) for p in parts))
    line = f.readline()
    if not line.endswith(b"\n"):
        raise OSError("the connection ended")
    if line[:1] == b"$":
        n = int(line[1:])
        return f.read(n + 2)[:-2].decode() if n >= 0 else ""
    return line.decode().strip()


class Server:
    dialect = "redis"

    def __init__(self, name):
        self.name, self.port, self.process, self.pid = name, free_port(), None, 0
        self.dir = os.path.join(scratch, f"{name}-{self.port}")

    def available(self):
        return True

    def spawn(self):
        os.makedirs(self.dir, exist_ok=True)
        with open(os.path.join(self.dir, "log"), "ab") as log:
            self.process = subprocess.Popen([str(x) for x in self.command()], stdout=log, stderr=log,
                                            stdin=subprocess.DEVNULL)
        self.pid = self.process.pid
        if self not in live:
            live.append(self)

    def start(self):
        self.spawn()
        self.first_answer(time.monotonic(), words=("PING",))

    def first_answer(self, since, limit=180, words=("GET", "k00000000007")):
        """Seconds from `since` to the first answer that is a value, not an error (LOADING) or nothing."""
        while time.monotonic() - since < limit:
            if self.process.poll() is not None:
                raise Failed(f"{self.name} ended: {self.last_words()}")
            try:
                answer = resp(self.port, *words)
                if answer and answer[0] != "-":
                    return time.monotonic() - since
            except OSError:
                pass
            time.sleep(0.0005)
        raise Failed(f"{self.name} gives no answer: {self.last_words()}")

    def last_words(self):
        try:
            with open(os.path.join(self.dir, "log"), errors="replace") as f:
                return " / ".join(f.read().splitlines()[-3:])
        except OSError:
            return ""

    def end(self, sig, limit=120):
        if self.process is None or self.process.poll() is not None:
            return
        self.process.send_signal(sig)
        try:
            self.process.wait(limit)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise Failed(f"{self.name} did not end within {limit} s") from None

    def stop(self):
        self.end(signal.SIGTERM)

    def kill(self):
        self.end(signal.SIGKILL)

    def cpu(self):
        return stat_of(self.pid)[1] / TICK

    def rss_anon(self):
        with open(f"/proc/{self.pid}/status") as f:
            return sum(int(l.split()[1]) * 1024 for l in f if l.startswith("RssAnon"))

    def settled_rss_anon(self, seconds=13, limit=40):
        """The same once it has not gone down for some seconds: writers give back later what they took."""
        least, since, end = self.rss_anon(), time.monotonic(), time.monotonic() + limit
        while time.monotonic() - since < seconds and time.monotonic() < end:
            time.sleep(0.1)
            now = self.rss_anon()
            if now < least:
                least, since = now, time.monotonic()
        return self.rss_anon()

    def count_present(self, keys, sample):
        """The share of a sample of the keys that have a value."""
        there = 0
        with socket.create_connection(("127.0.0.1", self.port), timeout=60) as s:
            f = s.makefile("rb")
            for i in range(sample):
                there += resp_on(s, f, "GET", f"k{i * 7919 * 613 % keys:011d}") not in ("", "$-1", "_")
        return there / sample


class Noh(Server):
    dialect = "noh"

    def __init__(self, durability, *more, name=None):
        super().__init__(name or f"noh-{durability}")
        self.durability, self.more = durability, more

    def available(self):
        return can_serve()

    def command(self):
        workers = ["--workers", E["WORKERS"]] if E.get("WORKERS") else []
        return [NOH, "serve", "--data", os.path.join(self.dir, "data"), "--resp-port", self.port, "--http-port", "0", "--durability",
                self.durability, "--io", "auto", *workers, *self.more]


class Redis(Server):
    FSYNC = {"off": [], "rdb": [], "everysec": ["--appendonly", "yes", "--appendfsync", "everysec"],
             "always": ["--appendonly", "yes", "--appendfsync", "always"]}

    def __init__(self, fsync, valkey=False):
        super().__init__(("valkey-" if valkey else "redis-") + fsync)
        self.fsync, self.exe = fsync, VALKEY if valkey else REDIS

    def available(self):
        return bool(self.exe)

    def command(self):
        return [self.exe, "--port", self.port, "--bind", "127.0.0.1", "--dir", self.dir, "--save", "", "--daemonize", "no",
                "--maxclients", "2000", "--client-output-buffer-limit", "pubsub 0 0 0",
                "--auto-aof-rewrite-percentage", "0", *self.FSYNC[self.fsync]]

    def stop(self):
        if self.fsync == "rdb" and self.process.poll() is None:
            resp(self.port, "SAVE", timeout=300)
        super().stop()


class Postgres(Server):
    """initdb in the temporary directory, as the user postgres when we are root."""
    RESERVE = r"""\set sku random(1, {skus})
WITH s AS (UPDATE sku SET available = available - 1, reserved = reserved + 1 WHERE id = :sku AND available >= 1
 RETURNING id, available), h AS (INSERT INTO hold(sku, n, ends) SELECT id, 1, now() + interval '600 s' FROM s
 RETURNING id) SELECT h.id AS hold, s.available FROM h, s \gset
WITH h AS (DELETE FROM hold WHERE id = :hold RETURNING sku, n) UPDATE sku SET reserved = reserved - h.n, sold = sold + h.n
 FROM h WHERE sku.id = h.sku;
"""
    UPDATE = "\\set id random(1, {keys})\nUPDATE counters SET v = v + 1 WHERE id = :id;\n"

    def __init__(self):
        super().__init__("postgresql")

    def available(self):
        return bool(PGBIN) and os.path.exists(PGBIN + "/initdb") and shutil.which("pgbench") is not None

    def as_postgres(self, *command):
        return (["runuser", "-u", "postgres", "--"] if os.getuid() == 0 else []) + [str(x) for x in command]

    def command(self):
        return self.as_postgres(f"{PGBIN}/postgres", "-D", f"{self.dir}/d")

    def start(self):
        os.makedirs(self.dir)
        if os.getuid() == 0:
            shutil.chown(self.dir, "postgres", "postgres")
        subprocess.run(self.as_postgres(f"{PGBIN}/initdb", "-D", f"{self.dir}/d", "-A", "trust", "-U", "postgres",
                                        "--no-sync"), check=True, capture_output=True, cwd=self.dir)
        with open(f"{self.dir}/d/postgresql.conf", "a") as f:
            f.write(f"port={self.port}\nlisten_addresses='127.0.0.1'\nunix_socket_directories='{self.dir}'\n"
                    "max_connections=300\nshared_buffers=1GB\nmax_wal_size=20GB\ncheckpoint_timeout=30min\n"
                    "wal_buffers=64MB\n")
        self.spawn()
        self.wait_for("SELECT 1", time.monotonic())

    def postmaster(self):
        try:
            with open(f"{self.dir}/d/postmaster.pid") as f:
                return int(f.readline())
        except (OSError, ValueError):
            return 0

    def end(self, sig, limit=120):
        """SIGINT to the postmaster is its fast shutdown, SIGQUIT its immediate one."""
        if self.process is None or self.process.poll() is not None:
            return
        pid = self.postmaster()
        if pid:
            os.kill(pid, signal.SIGINT if sig == signal.SIGTERM else signal.SIGQUIT)
        try:
            self.process.wait(limit)
        except subprocess.TimeoutExpired:
            raise Failed("PostgreSQL did not end") from None

    def query(self, sql):
        """One simple query over the wire; the first value of the first row."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=300) as s:
            body = struct.pack("!I", 196608) + b"user\0postgres\0database\0postgres\0\0"
            s.sendall(struct.pack("!I", len(body) + 4) + body)
            text = sql.encode() + b"\0"
            s.sendall(b"Q" + struct.pack("!I", len(text) + 4) + text)
            f, value, ready = s.makefile("rb"), None, 0
            while ready < 2:        # after the greeting, and after the query
                head = f.read(5)
                if len(head) < 5:
                    raise OSError("the connection ended")
                data = f.read(struct.unpack("!I", head[1:])[0] - 4)
                if head[:1] == b"E":
                    raise OSError(data.decode(errors="replace"))
                if head[:1] == b"D" and value is None:
                    n = struct.unpack("!i", data[2:6])[0]
                    value = data[6:6 + n].decode() if n >= 0 else ""
                ready += head[:1] == b"Z"
            return value

    def wait_for(self, sql, since, limit=120):
        while time.monotonic() - since < limit:
            if self.process.poll() is not None:
                raise Failed(f"PostgreSQL ended: {self.last_words()}")
            try:
                if self.query(sql) is not None:
                    return time.monotonic() - since
            except OSError:
                pass
            time.sleep(0.001)
        raise Failed("PostgreSQL gives no answer")

    def first_answer(self, since, **_):
        return self.wait_for("SELECT v FROM counters WHERE id = 7", since)

    def cpu(self):
        """The postmaster, its children that live, and those that ended."""
        pid = self.postmaster()
        total = sum(stat_of(pid)[1:])
        for d in os.listdir("/proc"):
            if d.isdigit():
                parent, own, _ = stat_of(d)
                total += own if parent == pid and pid else 0
        return total / TICK

    def make_stock(self, skus):
        self.query("CREATE TABLE sku(id int PRIMARY KEY, available bigint NOT NULL CHECK (available >= 0), "
                   "reserved bigint NOT NULL, sold bigint NOT NULL) WITH (fillfactor=70)")
        self.query(f"INSERT INTO sku SELECT g, 1000000000, 0, 0 FROM generate_series(1, {skus}) g")
        self.query("CREATE TABLE hold(id bigserial PRIMARY KEY, sku int NOT NULL, n int NOT NULL, ends timestamptz NOT NULL)")
        self.query("VACUUM ANALYZE")
        self.query("CHECKPOINT")

    def make_counters(self, keys):
        self.query("CREATE TABLE counters(id int PRIMARY KEY, v bigint NOT NULL) WITH (fillfactor=70)")
        self.query(f"INSERT INTO counters SELECT g, 1 FROM generate_series(1, {keys}) g")
        self.query("VACUUM ANALYZE")
        self.query("CHECKPOINT")

    def pgbench(self, script, clients, seconds):
        path = os.path.join(self.dir, "script.sql")
        with open(path, "w") as f:
            f.write(script)
        cpu, t = self.cpu(), time.monotonic()
        run = subprocess.run(["pgbench", "-h", "127.0.0.1", "-p", str(self.port), "-U", "postgres", "-n", "-M", "prepared",
                              "-f", path, "-c", str(clients), "-j", str(min(2, clients)), "-T", str(seconds), "postgres"],
                             capture_output=True, text=True, timeout=seconds + 120)
        found = re.search(r"tps = ([0-9.]+)", run.stdout)
        if not found:
            raise Failed("pgbench: " + run.stderr.strip()[-200:])
        return float(found.group(1)), (self.cpu() - cpu) / max(time.monotonic() - t, 1e-3)

    def reserve_commit(self, clients, seconds, skus):
        tps, cpu = self.pgbench(self.RESERVE.format(skus=skus), clients, seconds)
        return {"rate": 2 * tps, "server_cpu_cores": cpu}        # a script is two commands, each a transaction

    def update(self, clients, seconds, keys):
        self.pgbench(self.UPDATE.format(keys=keys), clients, seconds)


class start:
    """with start([...]) as peers: those that can run here; all are ended and their data removed afterwards."""

    def __init__(self, wanted):
        self.peers = [p for p in wanted if p.available()]

    def __enter__(self):
        try:
            for p in self.peers:
                p.start()
        except BaseException:
            self.__exit__()
            raise
        return self.peers

    def __exit__(self, *_):
        for p in self.peers:
            p.kill()
            if p in live:
                live.remove(p)
            shutil.rmtree(p.dir, ignore_errors=True)


def stop_all():
    for p in list(live):
        try:
            p.kill()
        except (Failed, OSError):
            pass
        live.remove(p)
