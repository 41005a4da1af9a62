//! Where a request came to, and from where, whatever the protocol.

use std::sync::Arc;

use parking_lot::Mutex;

use crate::connection::monitor::Busy;
use crate::connection::origin::Origin;
use crate::gateway::admission::turns::ConnectionAccount;
use crate::gateway::api::Api;

/// Where a request came to, and from where: whoever serves a connection puts it into the extensions of each request.
#[derive(Clone)]
pub struct Arrival {
    /// The API it came to.
    pub api: Arc<Api>,
    /// Where it comes from.
    pub origin: Arc<Origin>,
    /// The account that its connection is on.
    pub connection_account: Arc<ConnectionAccount>,
    /// Keeps its connection busy until it is answered.
    pub busy: Arc<Mutex<Option<Busy>>>,
}
