//! Taking what nobody else then gets.
//!
//! Owns that a call which is given up while it takes something leaves nothing behind that is taken and that nobody knows of.

use tokio::sync::oneshot;

/// Carries `work` to its end, also if this is dropped meanwhile; then `give_back` has what was taken. What is given up in the very moment in
/// which it is told is left to its time.
pub async fn take<T, F>(
    work: impl Future<Output = T> + Send + 'static,
    give_back: impl FnOnce(T) -> F + Send + 'static,
) -> T
where
    T: Send + 'static,
    F: Future<Output = ()> + Send,
{
    let (tell, told) = oneshot::channel();
    tokio::spawn(async move {
        if let Err(unwanted) = tell.send(work.await) {
            give_back(unwanted).await;
        }
    });
    told.await.expect("it is told unless the runtime ends, and we with it")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn what_is_taken_for_a_call_that_was_given_up_is_given_back() {
        let (give, given) = oneshot::channel();
        let work = async {
            tokio::time::sleep(Duration::from_millis(50)).await;
            7
        };
        let call = take(work, |taken| async move { give.send(taken).expect("somebody looks") });
        assert!(tokio::time::timeout(Duration::from_millis(1), call).await.is_err(), "it was given up");
        assert_eq!(given.await, Ok(7));
        assert_eq!(take(async { 8 }, |_| async { panic!("it is wanted") }).await, 8);
    }
}
