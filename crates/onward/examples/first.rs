//! The README's first example: one message, one worker. Safe to run again.

use onward::{Message, work, work::Worker};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Welcome {
    to: String,
}

async fn send(mail: Welcome) -> work::Result {
    println!("Welcome, {}!", mail.to);
    Ok(())
}

#[tokio::main]
async fn main() -> onward::Result<()> {
    let onward = onward::open("onward-data").await?;
    let welcome = Welcome { to: "ada@example.com".into() };
    let accepted = onward.enqueue("emails", Message::builder("email.welcome").json(&welcome)).await?;
    println!("accepted {}, durability: {}", accepted.id, accepted.durability);
    Worker::new(&onward).handle("emails", send).run_until_empty().await?;
    Ok(())
}
