//! `serve`: the statistics of a database over HTTP, for Prometheus and for a browser.
//!
//! Concurrency: one request at a time. Each one looks at the database anew.

use std::io;
use std::path::Path;

use clap::Args;
use serde_json::json;
use tiny_http::{Header, Method, Request, Response, Server};
use windrow::{Error, Result};

use crate::outcome::Outcome;
use crate::output::Output;
use crate::store::DbArgs;
use crate::watch::Watched;

/// The page: everything that it needs is in it.
const PAGE: &str = include_str!("serve/page.html");

/// Arguments of `serve`.
#[derive(Debug, Args)]
#[command(after_help = "\
/metrics has the text format of Prometheus: the statistics of the process that writes to the database, which it keeps \
in the file STATUS once a second, or those of a reader if there is no such process. / is a page that draws them. Who can \
reach the address can read them: names of keyspaces and sizes, but no keys and no values. Ctrl-C ends the command.

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

pub(crate) fn run(args: &ServeArgs, output: &mut Output) -> Result<Outcome> {
    let watched = Watched::new(&args.of.db);
    // What is no database is better refused now.
    watched.look()?;
    let address = &args.metrics;
    let failed = |error| Error::io("listen at", Path::new(address), error);
    let server = Server::http(address).map_err(|error| failed(io::Error::other(error)))?;
    let address = server.server_addr().to_string();
    let url = format!("http://{address}/");
    output.object(&json!({ "address": address, "url": url }))?;
    output.line(format_args!(
        "serving {} at {url} and {url}metrics",
        args.of.db.display()
    ))?;
    output.flush()?;
    loop {
        let request = server.recv().map_err(failed)?;
        // A client that has gone gets no answer.
        drop(answer(request, &watched));
    }
}

/// Answers one request.
fn answer(request: Request, watched: &Watched) -> io::Result<()> {
    let is_read = matches!(request.method(), Method::Get | Method::Head);
    let path = request.url().split('?').next().unwrap_or_default();
    let (status, kind, body) = match path {
        _ if !is_read => (405, TEXT, "only GET and HEAD are answered\n".to_owned()),
        "/" => (200, "text/html; charset=utf-8", PAGE.to_owned()),
        "/metrics" => match watched.look() {
            Ok(look) => (200, "text/plain; version=0.0.4; charset=utf-8", look.text),
            Err(error) => (503, TEXT, format!("{error}\n")),
        },
        _ => (404, TEXT, "there are only / and /metrics\n".to_owned()),
    };
    let mut response = Response::from_string(body).with_status_code(status);
    for (name, value) in [
        ("Content-Type", kind),
        ("Cache-Control", "no-store"),
        ("Content-Security-Policy", POLICY),
        ("X-Content-Type-Options", "nosniff"),
    ] {
        if let Ok(header) = Header::from_bytes(name, value) {
            response.add_header(header);
        }
    }
    request.respond(response)
}

const TEXT: &str = "text/plain; charset=utf-8";

/// The page loads nothing from elsewhere.
const POLICY: &str =
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'";
