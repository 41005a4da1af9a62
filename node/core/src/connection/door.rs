//! The kinds of ports that connections come by.
//!
//! Owns which there are. Never says what each serves: `gateway/door` does.

/// By which kind of port a connection came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Door {
    /// That of clients, or their Unix socket.
    #[default]
    Clients,
    /// That of metrics and administration.
    Admin,
}
