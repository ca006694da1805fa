//! An object store whose requests fail as a test wants it.

use std::fmt;
use std::ops::Range;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use futures_util::stream::{self, BoxStream};
use futures_util::{FutureExt, StreamExt, TryStreamExt};
use object_store::path::Path;
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta,
    ObjectStore, PutMode, PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
    UploadPart,
};

/// How a request fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// It does not reach the store.
    Lost,
    /// The store does it, and the answer is lost.
    Unanswered,
    /// There is never an answer.
    Hanging,
}

#[derive(Debug, Default)]
struct State {
    /// The requests so far: what they were.
    requests: Vec<String>,
    /// The numbers of the requests that fail.
    fault: Option<(Range<usize>, Fault)>,
    /// Whether conditions of puts are ignored.
    ignores_conditions: bool,
    unfinished_uploads: i64,
    longest_part: usize,
}

/// A store in front of another one.
#[derive(Debug, Clone)]
pub(crate) struct Faulty {
    objects: Arc<dyn ObjectStore>,
    state: Arc<Mutex<State>>,
}

impl Faulty {
    pub(crate) fn new(objects: Arc<dyn ObjectStore>) -> Self {
        Self {
            objects,
            state: Arc::default(),
        }
    }

    /// Forgets what was, and fails the request of this number, counted from 0.
    pub(crate) fn plan(&self, number: usize, fault: Fault) {
        self.plan_all(number..number + 1, fault);
    }

    /// As [`plan`](Self::plan), for all requests of these numbers.
    pub(crate) fn plan_all(&self, numbers: Range<usize>, fault: Fault) {
        let mut state = self.state.lock().unwrap();
        state.requests.clear();
        state.fault = Some((numbers, fault));
    }

    /// Forgets what was, and fails nothing.
    pub(crate) fn heal(&self) {
        let mut state = self.state.lock().unwrap();
        state.requests.clear();
        state.fault = None;
    }

    pub(crate) fn ignore_conditions(&self) {
        self.state.lock().unwrap().ignores_conditions = true;
    }

    /// The requests since the last plan.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.state.lock().unwrap().requests.clone()
    }

    pub(crate) fn unfinished_uploads(&self) -> i64 {
        self.state.lock().unwrap().unfinished_uploads
    }

    pub(crate) fn longest_part(&self) -> usize {
        self.state.lock().unwrap().longest_part
    }

    /// Whether the next request, which is `what`, fails.
    fn next(&self, what: String) -> Option<Fault> {
        let mut state = self.state.lock().unwrap();
        let number = state.requests.len();
        state.requests.push(what);
        let (planned, fault) = state.fault.as_ref()?;
        planned.contains(&number).then_some(*fault)
    }

    async fn request<T>(
        &self,
        what: String,
        request: impl Future<Output = Result<T>> + Send,
    ) -> Result<T> {
        match self.next(what) {
            None => request.await,
            Some(fault) => fail(fault, request).await,
        }
    }
}

async fn fail<T>(fault: Fault, request: impl Future<Output = Result<T>> + Send) -> Result<T> {
    match fault {
        Fault::Lost => {}
        Fault::Unanswered => {
            request.await.ok();
        }
        Fault::Hanging => std::future::pending().await,
    }
    Err(Error::Generic {
        store: "faulty",
        source: format!("{fault:?}").into(),
    })
}

impl fmt::Display for Faulty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a faulty store")
    }
}

#[async_trait]
impl ObjectStore for Faulty {
    async fn put_opts(
        &self,
        location: &Path,
        payload: PutPayload,
        mut options: PutOptions,
    ) -> Result<PutResult> {
        if self.state.lock().unwrap().ignores_conditions {
            options.mode = PutMode::Overwrite;
        }
        let put = self.objects.put_opts(location, payload, options);
        self.request(format!("put {location}"), put).await
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        let begin = self.objects.put_multipart_opts(location, options);
        let upload = self.request(format!("begin {location}"), begin).await?;
        let mut state = self.state.lock().unwrap();
        state.unfinished_uploads += 1;
        let store = self.clone();
        Ok(Box::new(FaultyUpload { upload, store }))
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        let get = self.objects.get_opts(location, options);
        self.request(format!("get {location}"), get).await
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        let store = self.clone();
        let deleted = async move {
            let locations: Vec<Result<Path>> = locations.collect().await;
            let what = format!("delete {}", locations.len());
            let delete = store
                .objects
                .delete_stream(Box::pin(stream::iter(locations)));
            let deleted = store.request(what, delete.try_collect::<Vec<_>>()).await;
            match deleted {
                Ok(deleted) => deleted.into_iter().map(Ok).collect(),
                Err(error) => vec![Err(error)],
            }
        };
        Box::pin(deleted.map(stream::iter).flatten_stream())
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.objects.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        let list = self.objects.list_with_delimiter(prefix);
        self.request("list".to_owned(), list).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.objects.copy_opts(from, to, options).await
    }
}

#[derive(Debug)]
struct FaultyUpload {
    upload: Box<dyn MultipartUpload>,
    store: Faulty,
}

#[async_trait]
impl MultipartUpload for FaultyUpload {
    fn put_part(&mut self, data: PutPayload) -> UploadPart {
        {
            let mut state = self.store.state.lock().unwrap();
            state.longest_part = state.longest_part.max(data.content_length());
        }
        let part = self.upload.put_part(data);
        let store = self.store.clone();
        Box::pin(async move { store.request("part".to_owned(), part).await })
    }

    async fn complete(&mut self) -> Result<PutResult> {
        let completed = self.upload.complete();
        let completed = self.store.request("complete".to_owned(), completed).await?;
        self.store.state.lock().unwrap().unfinished_uploads -= 1;
        Ok(completed)
    }

    async fn abort(&mut self) -> Result<()> {
        let aborted = self.upload.abort();
        self.store.request("abort".to_owned(), aborted).await?;
        self.store.state.lock().unwrap().unfinished_uploads -= 1;
        Ok(())
    }
}
