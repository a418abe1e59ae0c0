"""terminal.py SECONDS COMMAND... - has a dialogue with a command on a pseudo-terminal.

Standard input has one JSON list per line, [expect, send]: a regular expression that must match the output
since the previous step, and the text to type then. Prints the output as it comes. Exits with the command's
status, or 97 when an expected output did not come in time."""
import json, os, pty, re, select, signal, sys, time

seconds, command = float(sys.argv[1]), sys.argv[2:]
steps = [json.loads(line) for line in sys.stdin if line.strip()]
pid, fd = pty.fork()
if pid == 0:
    os.environ["TERM"] = "xterm"
    os.execvp(command[0], command)
import fcntl, struct, termios
fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 120, 0, 0))

shown, at = b"", 0
deadline = time.monotonic() + seconds


def show(piece):
    sys.stdout.buffer.write(piece)
    sys.stdout.buffer.flush()


def more():
    """Reads what there is; False at the end of the command's output."""
    global shown
    ready, _, _ = select.select([fd], [], [], max(0, deadline - time.monotonic()))
    if not ready:
        show(b"\n--- not in time\n")
        os.kill(pid, signal.SIGKILL)
        sys.exit(97)
    try:
        piece = os.read(fd, 65536)
    except OSError:
        return False
    shown += piece
    show(piece)
    return bool(piece)


for expect, send in steps:
    pattern = re.compile(expect.encode(), re.S)
    while True:
        found = pattern.search(shown, at)
        if found:
            at = found.end()
            break
        if not more():
            show(b"\n--- it ended before showing: " + expect.encode() + b"\n")
            sys.exit(97)
    os.write(fd, send.encode())
while more():
    pass
_, status = os.waitpid(pid, 0)
sys.exit(os.waitstatus_to_exitcode(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status))
