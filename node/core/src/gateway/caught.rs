//! A bug that one request meets ends that request alone.
//!
//! Owns catching the panic of a handler. A panic anywhere else ends the process, see `main`.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::Poll;

use quorate_api::{Applied, ErrorCode};
use quorate_machine::machine;

use crate::gateway::failure::Failure;

/// Runs the handler of a request, where it is pinned. A panic becomes its answer; of a write nobody knows then whether it was applied.
pub async fn caught<T, E: From<Failure>>(
    writes: bool,
    mut handler: Pin<&mut impl Future<Output = Result<T, E>>>,
) -> Result<T, E> {
    poll_fn(|context| match machine::catching(|| Ok(handler.as_mut().poll(context))) {
        Ok(polled) => polled,
        Err(fault) => {
            tracing::error!(%fault, "a request met a bug");
            let applied = if writes { Applied::Unknown } else { Applied::No };
            let detail = "the request met a bug of this software; the log of this node tells of it";
            Poll::Ready(Err(Failure::new(ErrorCode::Internal, applied, detail).into()))
        }
    })
    .await
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use super::*;

    fn panic_on_purpose() -> Result<(), Failure> {
        panic!("on purpose")
    }

    #[tokio::test]
    async fn a_panic_is_an_answer_and_says_whether_something_may_have_been_applied() {
        let applied = |writes| async move {
            let handler = async {
                tokio::task::yield_now().await;
                panic_on_purpose()
            };
            caught(writes, pin!(handler)).await.expect_err("it panicked").applied()
        };
        assert_eq!((applied(true).await, applied(false).await), (Applied::Unknown, Applied::No));
        assert_eq!(caught(true, pin!(async { Ok::<_, Failure>(7) })).await.ok(), Some(7));
    }
}
