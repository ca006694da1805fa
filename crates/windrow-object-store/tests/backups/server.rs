//! A server of the S3 protocol on this host, whose connections can be cut.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use object_store::aws::AmazonS3Builder;
use object_store::{BackoffConfig, ObjectStore, RetryConfig};
use s3s::service::S3ServiceBuilder;
use tempfile::TempDir;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;

use crate::client::{Digests, Plain};

/// The server runs until the drop.
#[derive(Debug)]
pub(crate) struct Server {
    /// A folder for each bucket.
    folder: TempDir,
    port: u16,
    /// The bytes that the server still takes before it cuts a connection, once.
    left: Arc<AtomicU64>,
    cuts: Arc<AtomicU64>,
    _runtime: Runtime,
}

impl Server {
    pub(crate) fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("bucket")).unwrap();
        let files = s3s_fs::FileSystem::new(folder.path()).unwrap();
        let service = S3ServiceBuilder::new(files).build();
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let port = listener.local_addr().unwrap().port();
        let (left, cuts) = (Arc::new(AtomicU64::new(u64::MAX)), Arc::default());
        let (bytes, cut) = (Arc::clone(&left), Arc::clone(&cuts));
        runtime.spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                let (left, cuts) = (Arc::clone(&bytes), Arc::clone(&cut));
                let socket = TokioIo::new(Cut { socket, left, cuts });
                let service = service.clone();
                tokio::spawn(async move {
                    let server = auto::Builder::new(TokioExecutor::new());
                    // A client that goes away is no error of the server.
                    server.serve_connection(socket, service).await.ok();
                });
            }
        });
        Self {
            folder,
            port,
            left,
            cuts,
            _runtime: runtime,
        }
    }

    /// A client, which tries failed requests again a few times, or not at all.
    pub(crate) fn client(&self, retries: usize) -> Arc<dyn ObjectStore> {
        let client = AmazonS3Builder::new()
            .with_endpoint(format!("http://127.0.0.1:{}", self.port))
            .with_allow_http(true)
            .with_bucket_name("bucket")
            .with_region("here")
            .with_skip_signature(true)
            .with_http_connector(Plain)
            .with_crypto_provider(Arc::new(Digests))
            .with_retry(RetryConfig {
                backoff: BackoffConfig {
                    init_backoff: Duration::from_millis(1),
                    ..BackoffConfig::default()
                },
                max_retries: retries,
                ..RetryConfig::default()
            });
        Arc::new(client.build().unwrap())
    }

    /// Cuts a connection when the server has got so many bytes more.
    pub(crate) fn cut_after(&self, bytes: u64) {
        self.left.store(bytes, Ordering::SeqCst);
    }

    /// How many connections were cut.
    pub(crate) fn cuts(&self) -> u64 {
        self.cuts.load(Ordering::SeqCst)
    }

    /// The files of unfinished uploads, which the server keeps beside the buckets.
    pub(crate) fn unfinished(&self) -> Vec<String> {
        let files = std::fs::read_dir(self.folder.path()).unwrap();
        let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
        names.filter(|name| name.contains("upload")).collect()
    }
}

/// A connection that may be cut.
struct Cut {
    socket: TcpStream,
    left: Arc<AtomicU64>,
    cuts: Arc<AtomicU64>,
}

impl AsyncRead for Cut {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let outcome = Pin::new(&mut self.socket).poll_read(context, buffer);
        let count = (buffer.filled().len() - before) as u64;
        let left = self.left.load(Ordering::SeqCst);
        if left == u64::MAX || count == 0 {
            return outcome;
        }
        if count <= left {
            self.left.store(left - count, Ordering::SeqCst);
            return outcome;
        }
        self.left.store(u64::MAX, Ordering::SeqCst);
        self.cuts.fetch_add(1, Ordering::SeqCst);
        Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()))
    }
}

impl AsyncWrite for Cut {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.socket).poll_write(context, buffer)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_shutdown(context)
    }
}
