// Package wall is the wall clock that the client goes by.
//
// Owns by how much tests have it go wrong. Never set by the client itself.
package wall

import (
	"sync/atomic"
	"time"
)

var ahead atomic.Int64

// SetAhead moves the wall clock of this process: so far ahead of the machine's.
func SetAhead(by time.Duration) { ahead.Store(int64(by)) }

// Of is the moment by the wall clock. It has no monotonic reading, so that what is reckoned with it goes by the wall clock.
func Of(moment time.Time) time.Time { return moment.Round(0).Add(time.Duration(ahead.Load())) }
