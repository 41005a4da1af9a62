//! Locks by name: etcd's service `v3lock`.

use bytes::Bytes;
use quorate_etcd_api::Error;
use quorate_etcd_api::lock::{LockRequest, LockResponse, UnlockRequest, UnlockResponse};
use quorate_node_core::gateway::call::Call;

use crate::contend;
use crate::header::header_now;
use crate::status::{Status, known};

/// Waits for a lock, and takes it.
pub async fn lock(call: &Call, request: LockRequest) -> Result<LockResponse, Status> {
    let LockRequest { name, lease } = request;
    let place = contend::enter(call, &name, lease, &Bytes::new()).await?;
    contend::wait_turn(call, &name, &place).await?;
    let header = header_now(&call.api);
    Ok(LockResponse { header: Some(header), key: place.key })
}

/// Gives a lock back.
pub async fn unlock(call: &Call, request: UnlockRequest) -> Result<UnlockResponse, Status> {
    if request.key.is_empty() {
        return Err(known(Error::EmptyKey));
    }
    Ok(UnlockResponse { header: Some(contend::leave(call, &request.key).await?) })
}
