package quoratetest

import (
	"time"

	"quorate.dev/go/internal/wall"
)

// SetWallAhead moves the wall clock that all clients of this process go by: so far ahead of the machine's, as after a suspend through which the
// monotonic clock stood still. Sessions are suspect then until they are renewed, and what was sent before is not repeated. 0 puts it right again.
func SetWallAhead(by time.Duration) { wall.SetAhead(by) }
