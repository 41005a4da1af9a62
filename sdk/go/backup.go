package quorate

// Backups: the whole cluster as one stream. Owns the check that the stream came to its end.

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"quorate.dev/go/api"
)

const (
	backupType = "application/vnd.quorate.backup"
	// backupEndBytes are the last of a backup.
	backupEndBytes = 72
	// backupPatience is how long nothing may come: a node that reads from a slow disk still sends something every second.
	backupPatience = 30 * time.Second
)

// backupEndMagic is what the last bytes of a backup begin with.
var backupEndMagic = []byte("\x89QRBEND\n")

// BackupOptions refine a backup.
type BackupOptions struct {
	// Local is of whatever the asked node has, without asking the others: also where there is no quorum.
	Local bool
}

// Backup is one that came to its end.
type Backup struct {
	// Bytes is its length.
	Bytes int64
	// Rows in it.
	Rows uint64
	// Revision that it is of.
	Revision uint64
}

// Backup writes a backup of the cluster, and fails unless it came to its end. Is not tried again once it has begun. `quorate-node backup verify`
// checks the sums in it.
func (c *Client) Backup(ctx context.Context, to io.Writer, options *BackupOptions) (*Backup, error) {
	consistency := api.ReadConsistency("")
	if options != nil && options.Local {
		consistency = api.ReadConsistencyLocal
	}
	// A follower does it as well, and the leader has more to do.
	wanted := &call{method: http.MethodGet, target: target("/v1/cluster/backup", "consistency", string(consistency)), preference: preferAny}
	_, opened, err := c.openStream(ctx, wanted, backupType, c.deadline(ctx, wanted))
	if err != nil {
		return nil, err
	}
	defer opened.close()
	tail := &tailWriter{to: to}
	if err := tail.copy(opened); err != nil {
		return nil, localError(CodeProtocol, err, "%s: the backup broke off after %d bytes: %v", opened.address, tail.count, err)
	}
	if len(tail.last) < backupEndBytes || !bytes.HasPrefix(tail.last, backupEndMagic) {
		return nil, localError(CodeProtocol, nil, "%s: the backup is not whole: it is cut short", opened.address)
	}
	numbers := tail.last[len(backupEndMagic):]
	return &Backup{
		Bytes: tail.count, Rows: binary.LittleEndian.Uint64(numbers), Revision: binary.LittleEndian.Uint64(numbers[24:]),
	}, nil
}

// SaveBackup is Backup into a file, which must not be there yet, and is there only once the backup is whole and durable.
func (c *Client) SaveBackup(ctx context.Context, path string, options *BackupOptions) (*Backup, error) {
	// Only its owner may read it: all of the cluster is in it.
	part, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".part-*")
	if err != nil {
		return nil, localError(api.ErrorCodeInvalidArgument, err, "%v", err)
	}
	defer func() {
		// Gone already where all went well.
		_ = os.Remove(part.Name())
	}()
	made, err := c.Backup(ctx, part, options)
	if err != nil {
		return nil, errors.Join(err, part.Close())
	}
	if err := errors.Join(part.Sync(), part.Close()); err != nil {
		return nil, localError(api.ErrorCodeInternal, err, "%v", err)
	}
	// Not a rename: it would replace a file that has come meanwhile.
	if err := os.Link(part.Name(), path); err != nil {
		return nil, localError(api.ErrorCodeInvalidArgument, err, "%v", err)
	}
	return made, nil
}

// tailWriter passes on what comes, and keeps the end of it.
type tailWriter struct {
	to    io.Writer
	count int64
	last  []byte
}

func (t *tailWriter) copy(from *stream) error {
	piece := make([]byte, 256<<10)
	for {
		n, err := from.read(piece, backupPatience)
		if n > 0 {
			t.count += int64(n)
			t.last = append(t.last, piece[:n]...)
			t.last = append([]byte{}, t.last[max(len(t.last)-backupEndBytes, 0):]...)
			if _, err := t.to.Write(piece[:n]); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
