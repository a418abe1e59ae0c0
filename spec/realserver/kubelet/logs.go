package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

const followPoll = 20 * time.Millisecond

func (n *node) path(name, ending string) string { return filepath.Join(n.logs, name+ending) }

type logOptions struct {
	follow, timestamps bool
	tail, limit        int64 // -1: none
	since              time.Time
}

func number(r *http.Request, key string) int64 {
	v, err := strconv.ParseInt(r.URL.Query().Get(key), 10, 64)
	if err != nil {
		return -1
	}
	return v
}

func optionsOf(r *http.Request) logOptions {
	q := r.URL.Query()
	o := logOptions{
		follow:     q.Get("follow") == "true",
		timestamps: q.Get("timestamps") == "true",
		tail:       number(r, "tailLines"),
		limit:      number(r, "limitBytes"),
	}
	if s := number(r, "sinceSeconds"); s >= 0 {
		o.since = time.Now().Add(-time.Duration(s) * time.Second)
	}
	if t, err := time.Parse(time.RFC3339, q.Get("sinceTime")); err == nil {
		o.since = t
	}
	return o
}

// shown is what of a line goes out: nothing when it is too old.
func (o *logOptions) shown(line []byte) []byte {
	stamp, text, found := bytes.Cut(line, []byte(" "))
	if at, err := time.Parse(time.RFC3339Nano, string(stamp)); found && err == nil && at.Before(o.since) {
		return nil
	}
	if o.timestamps {
		return line
	}
	return text
}

func (n *node) serveLogs(w http.ResponseWriter, r *http.Request) {
	name, ok := n.container(w, r)
	if !ok {
		return
	}
	o, ending := optionsOf(r), ".log"
	if r.URL.Query().Get("previous") == "true" {
		ending = ".previous.log"
	}
	file, err := os.Open(n.path(name, ending))
	if err != nil {
		text := fmt.Sprintf(`previous terminated container "%s" in pod "%s" not found`,
			r.PathValue("container"), r.PathValue("pod"))
		http.Error(w, text, http.StatusBadRequest)
		return
	}
	defer file.Close()
	w.Header().Set("Content-Type", "text/plain")
	w.(http.Flusher).Flush()
	lines := bufio.NewReader(file)
	var kept [][]byte
	rest := readLines(lines, nil, func(line []byte) { kept = append(kept, bytes.Clone(line)) })
	if o.tail >= 0 && int64(len(kept)) > o.tail {
		kept = kept[int64(len(kept))-o.tail:]
	}
	left := o.limit
	send := func(line []byte) bool {
		out := o.shown(line)
		if left >= 0 && int64(len(out)) > left {
			out = out[:left]
		}
		if left >= 0 {
			left -= int64(len(out))
		}
		_, err := w.Write(out)
		return err == nil && left != 0
	}
	for _, line := range kept {
		if !send(line) {
			return
		}
	}
	if len(rest) > 0 && !o.follow {
		send(rest)
	}
	for o.follow {
		w.(http.Flusher).Flush()
		_, gone := os.Stat(n.path(name, ".done"))
		more := true
		rest = readLines(lines, rest, func(line []byte) { more = more && send(line) })
		if !more || gone == nil {
			return
		}
		select {
		case <-r.Context().Done():
			return
		case <-time.After(followPoll):
		}
	}
}

// readLines hands on every whole line, its newline included, and returns the piece of one that is not whole
// yet.
func readLines(from *bufio.Reader, rest []byte, each func([]byte)) []byte {
	for {
		piece, err := from.ReadBytes('\n')
		rest = append(rest, piece...)
		if err == io.EOF || err != nil {
			return rest
		}
		each(rest)
		rest = nil
	}
}
