//! The runtime of openraft's tasks: tokio's, where each task is watched.
//!
//! Owns nothing else: whatever openraft asks for is done by [`TokioRuntime`].

use std::time::Duration;

use openraft::OptionalSend;
use openraft::async_runtime::AsyncRuntime;
use openraft_rt_tokio::TokioRuntime;
use quorate_threads::watchdog;

/// Says so where one step of openraft's keeps a thread for too long; see [`watchdog`].
#[derive(Debug)]
pub struct WatchedRuntime(TokioRuntime);

impl AsyncRuntime for WatchedRuntime {
    type JoinError = <TokioRuntime as AsyncRuntime>::JoinError;
    type JoinHandle<T: OptionalSend + 'static> = <TokioRuntime as AsyncRuntime>::JoinHandle<T>;
    type Sleep = <TokioRuntime as AsyncRuntime>::Sleep;
    type Instant = <TokioRuntime as AsyncRuntime>::Instant;
    type TimeoutError = <TokioRuntime as AsyncRuntime>::TimeoutError;
    type Timeout<R, T: Future<Output = R> + OptionalSend> = <TokioRuntime as AsyncRuntime>::Timeout<R, T>;
    type ThreadLocalRng = <TokioRuntime as AsyncRuntime>::ThreadLocalRng;
    type Mpsc = <TokioRuntime as AsyncRuntime>::Mpsc;
    type Watch = <TokioRuntime as AsyncRuntime>::Watch;
    type Oneshot = <TokioRuntime as AsyncRuntime>::Oneshot;
    type Mutex<T: OptionalSend + 'static> = <TokioRuntime as AsyncRuntime>::Mutex<T>;

    fn spawn<T>(future: T) -> Self::JoinHandle<T::Output>
    where
        T: Future + OptionalSend + 'static,
        T::Output: OptionalSend + 'static,
    {
        TokioRuntime::spawn(watchdog::task(future))
    }

    fn sleep(duration: Duration) -> Self::Sleep {
        TokioRuntime::sleep(duration)
    }

    fn sleep_until(deadline: Self::Instant) -> Self::Sleep {
        TokioRuntime::sleep_until(deadline)
    }

    fn timeout<R, F: Future<Output = R> + OptionalSend>(duration: Duration, future: F) -> Self::Timeout<R, F> {
        TokioRuntime::timeout(duration, future)
    }

    fn timeout_at<R, F: Future<Output = R> + OptionalSend>(deadline: Self::Instant, future: F) -> Self::Timeout<R, F> {
        TokioRuntime::timeout_at(deadline, future)
    }

    fn is_panic(join_error: &Self::JoinError) -> bool {
        TokioRuntime::is_panic(join_error)
    }

    fn thread_rng() -> Self::ThreadLocalRng {
        TokioRuntime::thread_rng()
    }

    fn new(threads: usize) -> Self {
        Self(TokioRuntime::new(threads))
    }

    fn block_on<F, T>(&mut self, future: F) -> T
    where
        F: Future<Output = T>,
    {
        self.0.block_on(future)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use openraft::type_config::TypeConfigExt;
    use quorate_threads::watchdog;

    use crate::raft::TypeConfig;

    /// So long that the first one is told as an error, also in a build with debug assertions.
    const TOO_LONG: Duration = watchdog::STEP_MAX.saturating_mul(15);

    async fn long_step_of_openraft() {
        let begin = watchdog::processor_time();
        while watchdog::processor_time() - begin < TOO_LONG {}
    }

    #[tokio::test]
    async fn what_openraft_starts_is_watched() {
        TypeConfig::spawn(long_step_of_openraft()).await.unwrap();
        let faults = watchdog::faults();
        assert!(faults.iter().any(|(what, ..)| what.contains("long_step_of_openraft")), "{faults:?}");
    }
}
