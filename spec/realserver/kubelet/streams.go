package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/remotecommand"
	utilexec "k8s.io/utils/exec"
)

// node is the executor, attacher and port forwarder that the streaming library asks.
type node struct{ logs string }

// ExecInContainer runs a process of this machine.
func (n *node) ExecInContainer(
	_ context.Context, _ string, _ types.UID, _ string, words []string,
	in io.Reader, out, errOut io.WriteCloser,
	tty bool, resize <-chan remotecommand.TerminalSize, _ time.Duration,
) error {
	if len(words) == 0 {
		return errors.New("no command")
	}
	cmd := exec.Command(words[0], words[1:]...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	var err error
	if tty {
		err = runTTY(cmd, in, out, resize)
	} else {
		err = runPlain(cmd, in, out, errOut)
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return utilexec.CodeExitError{Err: err, Code: exit.ExitCode()}
	}
	return err
}

// The process may end while its standard input is still open, so nobody waits for that copy.
func runPlain(cmd *exec.Cmd, in io.Reader, out, errOut io.Writer) error {
	if out != nil {
		cmd.Stdout = out
	}
	if errOut != nil {
		cmd.Stderr = errOut
	}
	if in != nil {
		stdin, err := cmd.StdinPipe()
		if err != nil {
			return err
		}
		go func() {
			_, _ = io.Copy(stdin, in)
			stdin.Close()
		}()
	}
	return cmd.Run()
}

func openPTY() (master, slave *os.File, err error) {
	master, err = os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_CLOEXEC, 0)
	if err != nil {
		return nil, nil, err
	}
	fd := int(master.Fd())
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		slave, err = os.OpenFile("/dev/pts/"+strconv.Itoa(number), os.O_RDWR|syscall.O_NOCTTY, 0)
	}
	if err != nil {
		master.Close()
	}
	return master, slave, err
}

func runTTY(cmd *exec.Cmd, in io.Reader, out io.Writer, resize <-chan remotecommand.TerminalSize) error {
	master, slave, err := openPTY()
	if err != nil {
		return err
	}
	defer master.Close()
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	cmd.SysProcAttr.Setctty = true
	err = cmd.Start()
	slave.Close()
	if err != nil {
		return err
	}
	go func() {
		for size := range resize {
			window := &unix.Winsize{Row: size.Height, Col: size.Width}
			_ = unix.IoctlSetWinsize(int(master.Fd()), unix.TIOCSWINSZ, window)
		}
	}()
	if in != nil {
		go func() { _, _ = io.Copy(master, in) }()
	}
	_, _ = io.Copy(out, master) // ends with EIO when the process and its children have gone
	return cmd.Wait()
}

// AttachContainer is a container's first process that repeats its input and tells of window sizes.
func (n *node) AttachContainer(
	_ context.Context, _ string, _ types.UID, name string,
	in io.Reader, out, errOut io.WriteCloser,
	tty bool, resize <-chan remotecommand.TerminalSize,
) error {
	if out != nil {
		fmt.Fprintf(out, "attached to %s\n", name)
	}
	if errOut != nil {
		fmt.Fprintf(errOut, "a word on stderr\n")
	}
	if tty && out != nil {
		size, ok := <-resize
		if ok {
			fmt.Fprintf(out, "window %dx%d\n", size.Width, size.Height)
		}
	}
	if in != nil && out != nil {
		_, err := io.Copy(out, in)
		return err
	}
	return nil
}

// PortForward connects to a port of this machine. The pod's end of the conversation is what ends it.
func (n *node) PortForward(
	_ context.Context, _ string, _ types.UID, port int32, stream io.ReadWriteCloser,
) error {
	conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return err
	}
	defer conn.Close()
	tcp := conn.(*net.TCPConn)
	go func() {
		_, _ = io.Copy(tcp, stream)
		_ = tcp.CloseWrite()
	}()
	_, err = io.Copy(stream, tcp)
	return err
}
