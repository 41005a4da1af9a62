//! One agent over standard input and output: its program starts us and ends us.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use rmcp::ServiceExt;
use rmcp::model::ProtocolVersion;
use rmcp::service::ServerInitializeError;
use rmcp::transport::io::stdio_pipes;
use tokio::io::{AsyncRead, ReadBuf};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::agent::Agent;
use crate::server::{Server, Toolbox};
use crate::settings::{ServeError, Settings};

/// How long what was given up by dropped calls may take to be told, beyond the end of the session.
const ENDINGS_WITHIN: Duration = Duration::from_secs(3);

/// Serves the agent at the other end of standard input and output, until it closes them or `stop` is there. Whatever it held is given up.
pub async fn serve_stdio(settings: Settings, stop: impl Future<Output = ()>) -> Result<(), ServeError> {
    let (input, output) = stdio_pipes();
    serve(settings, input, output, stop).await
}

async fn serve(
    settings: Settings,
    input: impl AsyncRead + Send + Unpin + 'static,
    output: impl tokio::io::AsyncWrite + Send + Unpin + 'static,
    stop: impl Future<Output = ()>,
) -> Result<(), ServeError> {
    let toolbox = Arc::new(Toolbox::new(settings.read_only, &settings.prefix, ProtocolVersion::KNOWN_VERSIONS));
    let endings = TaskTracker::new();
    let agent = Arc::new(Agent::new(settings, &endings));
    let input = UntilEnd { input, ended: agent.leaving().clone() };
    let served = async {
        match Server::new(agent.clone(), &toolbox).serve((input, output)).await {
            Ok(running) => running.waiting().await.map(drop).map_err(ServeError::from),
            // Who looks whether we can be started at all closes at once.
            Err(ServerInitializeError::ConnectionClosed(_)) => Ok(()),
            Err(error) => Err(ServeError::Opening(error.to_string())),
        }
    };
    let served = tokio::select! {
        served = served => served,
        () = stop => Ok(()),
    };
    agent.leaving().cancel();
    agent.end().await;
    drop(agent);
    endings.close();
    // Calls that still run hold on to the agent; the session has ended, so nothing hangs on them.
    let _ = tokio::time::timeout(ENDINGS_WITHIN, endings.wait()).await;
    served
}

/// An input that tells when it has ended, so that calls stop to wait for what nobody will hear of.
struct UntilEnd<R> {
    input: R,
    ended: CancellationToken,
}

impl<R: AsyncRead + Unpin> AsyncRead for UntilEnd<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        let before = into.filled().len();
        let read = Pin::new(&mut self.input).poll_read(context, into);
        let is_end = matches!(read, Poll::Ready(Ok(()))) && into.filled().len() == before && into.remaining() > 0;
        if is_end || matches!(read, Poll::Ready(Err(_))) {
            self.ended.cancel();
        }
        read
    }
}
