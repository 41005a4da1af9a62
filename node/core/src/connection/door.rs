//! The kinds of ports that connections come by.
//!
//! Owns which there are. Never says what each serves: `gateway/door` does.

/// The kind of port that a connection came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Door {
    /// That of clients, or their Unix socket.
    #[default]
    Clients,
    /// That of metrics and administration.
    Admin,
}
