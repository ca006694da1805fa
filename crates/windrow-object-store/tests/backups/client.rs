//! What a client of the S3 protocol needs beside `object_store`, without TLS: connections, and a digest.

use async_trait::async_trait;
use http_body_util::BodyExt;
use hyper_util::client::legacy::{Client, connect::HttpConnector as Connector};
use hyper_util::rt::TokioExecutor;
use object_store::client::{
    ClientOptions, CryptoProvider, DigestAlgorithm, DigestContext, HmacContext, HttpClient,
    HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpRequestBody, HttpResponse,
    HttpResponseBody, HttpService, Signer, SigningAlgorithm,
};
use object_store::{Error, Result};
use sha2::{Digest, Sha256};

/// Connections without TLS.
#[derive(Debug)]
pub(crate) struct Plain;

impl HttpConnector for Plain {
    fn connect(&self, _: &ClientOptions) -> Result<HttpClient> {
        let client = Client::builder(TokioExecutor::new()).build_http();
        Ok(HttpClient::new(PlainClient(client)))
    }
}

#[derive(Debug)]
struct PlainClient(Client<Connector, HttpRequestBody>);

#[async_trait]
impl HttpService for PlainClient {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let response = self.0.request(request).await;
        let response = response.map_err(|error| HttpError::new(HttpErrorKind::Request, error))?;
        Ok(response.map(|body| {
            let broken = |error| HttpError::new(HttpErrorKind::Interrupted, error);
            HttpResponseBody::new(body.map_err(broken))
        }))
    }
}

/// The digest of a request to delete several objects. Nothing is signed.
#[derive(Debug)]
pub(crate) struct Digests;

impl CryptoProvider for Digests {
    fn digest(&self, _: DigestAlgorithm) -> Result<Box<dyn DigestContext>> {
        Ok(Box::new(OneDigest(Sha256::new(), Vec::new())))
    }

    fn hmac(&self, _: DigestAlgorithm, _: &[u8]) -> Result<Box<dyn HmacContext>> {
        Err(unsigned())
    }

    fn sign(&self, _: SigningAlgorithm, _: &[u8]) -> Result<Box<dyn Signer>> {
        Err(unsigned())
    }
}

fn unsigned() -> Error {
    let source = "nothing is signed".into();
    Error::NotSupported { source }
}

struct OneDigest(Sha256, Vec<u8>);

impl DigestContext for OneDigest {
    fn update(&mut self, data: &[u8]) {
        self.0.update(data);
    }

    fn finish(&mut self) -> Result<&[u8]> {
        self.1 = self.0.clone().finalize().to_vec();
        Ok(&self.1)
    }
}
