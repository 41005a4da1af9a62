//! Lists of the cluster's that etcd shows as a whole: users, roles, leases.

use quorate_machine::query::{Observed, Page, StateFault};
use quorate_machine::types::Revision;
use quorate_node_core::backend::SharedNode;
use quorate_node_core::gateway::auth::requirement::{self, Permission};
use quorate_node_core::gateway::call::Call;
use quorate_node_core::gateway::scan::scan;

use crate::status::Status;

/// How many are read at once.
const PAGE: usize = 1_000;

/// Reads what follows a name, with the names.
type ReadPage<K, R> = fn(&SharedNode, Option<&K>, usize) -> Result<Observed<Page<(K, R)>>, StateFault>;

/// The names of all, for who may administer everything, and the revision at which the last of them were read.
pub async fn names<K, R>(call: &Call, page: ReadPage<K, R>) -> Result<(Vec<K>, Revision), Status>
where
    K: Clone + Send + Sync + 'static,
    R: Send + 'static,
{
    call.admit_read(&requirement::on_prefix(Permission::Admin, b"")).await?;
    let mut names: Vec<K> = Vec::new();
    loop {
        let after = names.last().cloned();
        let Observed { at, found, .. } = scan(call, move |node| page(&node, after.as_ref(), PAGE)).await?;
        names.extend(found.items.into_iter().map(|(name, _)| name));
        if !found.more {
            return Ok((names, at.revision));
        }
    }
}
