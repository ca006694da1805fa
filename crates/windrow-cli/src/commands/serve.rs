//! `serve`: the statistics of a database over HTTP, for Prometheus and for a browser.
//!
//! The server reads the head of a request, answers it and closes the connection. The small servers among the crates read a
//! body into memory by the length that a client claims, and wait for slow clients without an end, so this one is written out.
//! It bounds the head, the time and the number of connections, and reads no body.
//!
//! Concurrency: a thread for each connection. All look at the database one after the other.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use clap::Args;
use serde_json::json;
use windrow::{Error, Result};

use crate::outcome::Outcome;
use crate::output::Output;
use crate::store::DbArgs;
use crate::watch::Watched;

/// The page: everything that it needs is in it.
const PAGE: &str = include_str!("serve/page.html");

/// The longest head of a request.
const HEAD_BYTES_MAX: usize = 8 << 10;

/// A client sends its head, and takes each part of the answer, in this time.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Connections at a time. Further ones are closed.
const CONNECTIONS_MAX: usize = 16;

/// Arguments of `serve`.
#[derive(Debug, Args)]
#[command(after_help = "\
/metrics has the text format of Prometheus: the statistics of the process that writes to the database, which it keeps \
in the file STATUS once a second. If there is no such process, windrow_up is 0, and only the present state of the files \
is there. / is a page that draws all that. Who can reach the address can read it: names of keyspaces and sizes, but no \
keys and no values. Ctrl-C ends the command.

Examples:
  windrow serve shop.db
  windrow serve shop.db --metrics 127.0.0.1:0
  windrow serve shop.db --metrics 10.1.2.3:9187")]
pub(crate) struct ServeArgs {
    #[command(flatten)]
    of: DbArgs,

    /// Address and port to listen at; port 0 for any that is free
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:9187")]
    metrics: String,
}

/// What all connections share.
struct Site {
    watched: Mutex<Watched>,
    address: SocketAddr,
    connections: AtomicUsize,
}

pub(crate) fn run(args: &ServeArgs, output: &mut Output) -> Result<Outcome> {
    let mut watched = Watched::new(&args.of.db);
    // What is no database is better refused now.
    watched.look()?;
    let failed = |error| Error::io("listen at", Path::new(&args.metrics), error);
    let listener = TcpListener::bind(&args.metrics).map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    let url = format!("http://{address}/");
    output.object(&json!({ "address": address.to_string(), "url": url }))?;
    output.line(format_args!(
        "serving {} at {url} and {url}metrics",
        args.of.db.display()
    ))?;
    output.flush()?;
    let site = Arc::new(Site {
        watched: Mutex::new(watched),
        address,
        connections: AtomicUsize::new(0),
    });
    loop {
        match listener.accept() {
            Ok((stream, _)) => serve_connection(&site, stream),
            // A connection that ended early, or too many open files: neither lasts.
            Err(_) => thread::sleep(Duration::from_millis(100)),
        }
    }
}

/// Answers the request of a connection on a thread of its own.
fn serve_connection(site: &Arc<Site>, stream: TcpStream) {
    if site.connections.fetch_add(1, Ordering::Relaxed) >= CONNECTIONS_MAX {
        site.connections.fetch_sub(1, Ordering::Relaxed);
        return;
    }
    let own = Arc::clone(site);
    let answer = move || {
        // A client that has gone gets no answer.
        answer(&own, stream).ok();
        own.connections.fetch_sub(1, Ordering::Relaxed);
    };
    if thread::Builder::new().spawn(answer).is_err() {
        site.connections.fetch_sub(1, Ordering::Relaxed);
    }
}

fn answer(site: &Site, mut stream: TcpStream) -> io::Result<()> {
    stream.set_write_timeout(Some(TIMEOUT))?;
    let Some(head) = read_head(&mut stream)? else {
        return Ok(());
    };
    let (status, kind, body) = content(site, &head);
    let is_head = head.starts_with("HEAD ");
    let length = body.len();
    let answer = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n\
         Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n\
         Content-Security-Policy: {POLICY}\r\n\r\n"
    );
    stream.write_all(answer.as_bytes())?;
    if !is_head {
        stream.write_all(body.as_bytes())?;
    }
    stream.flush()
}

/// The head of a request; `None` if it is too long, too slow, or no text.
fn read_head(stream: &mut TcpStream) -> io::Result<Option<String>> {
    let start = Instant::now();
    let mut head = Vec::new();
    let mut part = [0; 1024];
    while !contains_end(&head) {
        let Some(rest) = TIMEOUT.checked_sub(start.elapsed()) else {
            return Ok(None);
        };
        stream.set_read_timeout(Some(rest.max(Duration::from_millis(1))))?;
        let count = stream.read(&mut part)?;
        head.extend(part.iter().take(count));
        if count == 0 || head.len() > HEAD_BYTES_MAX {
            return Ok(None);
        }
    }
    Ok(String::from_utf8(head).ok())
}

/// Whether the empty line behind a head is in `bytes`.
fn contains_end(bytes: &[u8]) -> bool {
    bytes.windows(4).any(|four| four == b"\r\n\r\n")
}

/// The status, the type and the body of the answer to a request.
fn content(site: &Site, head: &str) -> (&'static str, &'static str, String) {
    let mut words = head.split([' ', '\r']);
    let (method, target) = (words.next().unwrap_or(""), words.next().unwrap_or(""));
    if !["GET", "HEAD"].contains(&method) {
        let body = "only GET and HEAD are answered\n";
        return ("405 Method Not Allowed", TEXT, body.to_owned());
    }
    if !is_for_this_site(site, head) {
        let body = "the header Host names another site\n";
        return ("403 Forbidden", TEXT, body.to_owned());
    }
    match target.split('?').next().unwrap_or_default() {
        "/" => ("200 OK", "text/html; charset=utf-8", PAGE.to_owned()),
        "/metrics" => {
            let mut watched = site.watched.lock().unwrap_or_else(PoisonError::into_inner);
            match watched.look() {
                Ok(look) => ("200 OK", METRICS, look.text),
                Err(error) => ("503 Service Unavailable", TEXT, format!("{error}\n")),
            }
        }
        _ => {
            let body = "there are only / and /metrics\n";
            ("404 Not Found", TEXT, body.to_owned())
        }
    }
}

/// Whether a request to a loopback address names one, too. A page of another site could lead a name of its own there, and
/// read the answers in a browser.
fn is_for_this_site(site: &Site, head: &str) -> bool {
    if !site.address.ip().is_loopback() {
        return true;
    }
    let mut hosts = head.lines().filter_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("host").then_some(value.trim())
    });
    hosts.all(|host| {
        let name = host.rsplit_once(':').map_or(host, |(name, _)| name);
        ["localhost", "127.0.0.1", "[::1]"].contains(&name) || host == site.address.to_string()
    })
}

const TEXT: &str = "text/plain; charset=utf-8";
const METRICS: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The page loads nothing from elsewhere.
const POLICY: &str =
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'";
