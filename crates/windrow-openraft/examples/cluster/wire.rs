//! Calls between processes: frames of `MessagePack` over TCP.

use std::io;

use openraft::BasicNode;
use openraft::error::{InstallSnapshotError, RPCError, RaftError, RemoteError, Unreachable};
use openraft::network::{RPCOption, RaftNetwork, RaftNetworkFactory};
use openraft::raft::{
    AppendEntriesRequest, AppendEntriesResponse, InstallSnapshotRequest, InstallSnapshotResponse,
    VoteRequest, VoteResponse,
};
use serde::Deserialize;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::application::{Config, Put};

/// What a process asks a node.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Call {
    /// Answered by openraft.
    AppendEntries(AppendEntriesRequest<Config>),
    /// Answered by openraft.
    Vote(VoteRequest<u64>),
    /// Answered by openraft.
    InstallSnapshot(InstallSnapshotRequest<Config>),
    /// Makes a cluster of the nodes at these addresses. Answered with whether it is one now.
    Initialize(Vec<String>),
    /// Answered with whether the put is durable.
    Put(Put),
    /// Answered with the contents of the state.
    Contents,
}

/// Sends one value.
pub(crate) async fn send<T: Serialize>(stream: &mut TcpStream, value: &T) -> io::Result<()> {
    let bytes = rmp_serde::to_vec_named(value).map_err(io::Error::other)?;
    let length = u32::try_from(bytes.len()).map_err(io::Error::other)?;
    stream.write_all(&length.to_le_bytes()).await?;
    stream.write_all(&bytes).await
}

/// Receives one value.
pub(crate) async fn receive<T: DeserializeOwned>(stream: &mut TcpStream) -> io::Result<T> {
    let mut bytes = vec![0; stream.read_u32_le().await? as usize];
    stream.read_exact(&mut bytes).await?;
    rmp_serde::from_slice(&bytes).map_err(io::Error::other)
}

/// A connection to a node, which is made when it is needed.
#[derive(Debug)]
pub(crate) struct Connection {
    address: String,
    stream: Option<TcpStream>,
}

impl Connection {
    pub(crate) fn new(address: &str) -> Self {
        Self {
            address: address.to_owned(),
            stream: None,
        }
    }

    /// Asks the node, and waits for its answer. After an error, or if this is dropped before its end, the next call makes
    /// a new connection.
    pub(crate) async fn call<T: DeserializeOwned>(&mut self, call: &Call) -> io::Result<T> {
        let mut stream = match self.stream.take() {
            Some(stream) => stream,
            None => TcpStream::connect(&self.address).await?,
        };
        send(&mut stream, call).await?;
        let answer = receive(&mut stream).await?;
        self.stream = Some(stream);
        Ok(answer)
    }

    async fn raft<T: DeserializeOwned, E: DeserializeOwned + std::error::Error>(
        &mut self,
        target: u64,
        call: Call,
    ) -> Result<T, RPCError<u64, BasicNode, E>> {
        let answer: io::Result<Result<T, E>> = self.call(&call).await;
        match answer {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(error)) => Err(RPCError::RemoteError(RemoteError::new(target, error))),
            // openraft waits a little before it tries such a node again.
            Err(error) => Err(RPCError::Unreachable(Unreachable::new(&error))),
        }
    }
}

/// Connects nodes for openraft.
pub(crate) struct Network;

/// A node that openraft calls.
pub(crate) struct Peer {
    target: u64,
    connection: Connection,
}

impl RaftNetworkFactory<Config> for Network {
    type Network = Peer;

    async fn new_client(&mut self, target: u64, node: &BasicNode) -> Peer {
        let connection = Connection::new(&node.addr);
        Peer { target, connection }
    }
}

type Answer<T, E> = Result<T, RPCError<u64, BasicNode, E>>;

impl RaftNetwork<Config> for Peer {
    async fn append_entries(
        &mut self,
        request: AppendEntriesRequest<Config>,
        _: RPCOption,
    ) -> Answer<AppendEntriesResponse<u64>, RaftError<u64>> {
        let call = Call::AppendEntries(request);
        self.connection.raft(self.target, call).await
    }

    async fn install_snapshot(
        &mut self,
        request: InstallSnapshotRequest<Config>,
        _: RPCOption,
    ) -> Answer<InstallSnapshotResponse<u64>, RaftError<u64, InstallSnapshotError>> {
        let call = Call::InstallSnapshot(request);
        self.connection.raft(self.target, call).await
    }

    async fn vote(
        &mut self,
        request: VoteRequest<u64>,
        _: RPCOption,
    ) -> Answer<VoteResponse<u64>, RaftError<u64>> {
        self.connection.raft(self.target, Call::Vote(request)).await
    }
}
