//! How an addon is linked: Node has the functions that it calls.

fn main() {
    napi_build::setup();
}
