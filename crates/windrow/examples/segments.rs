fn main() {
    use windrow::{KeyspaceOptions, Preset, simulation::*};
    let gb: f64 = std::env::args().nth(1).unwrap().parse().unwrap();
    let up: f64 = std::env::args().nth(2).unwrap().parse().unwrap();
    let preset = match &std::env::args().nth(3).unwrap()[..] { "l" => Preset::Leveling, "a" => Preset::Autumn, "s" => Preset::Lsma, _ => Preset::Balanced };
    let mut o = KeyspaceOptions::preset(preset);
    o.medium_from = u64::MAX; o.large_from = u64::MAX;
    let start = std::time::Instant::now();
    let load = Load::inserts((gb * 1e9) as u64, o).overwritten(up);
    let out = simulate(&load).unwrap();
    for s in &out.samples {
        println!("{:.2}GB L={} WA={:.2} SA={:.3}/{:.3} runs={:.2}/{} jobs={}", s.live_bytes as f64/1e9, s.level_count, s.traffic.write_amplification(), s.space_amplification, s.space_amplification_most, s.runs_per_seek, s.runs_per_seek_most, s.jobs);
    }
    let s = out.samples.last().unwrap();
    for (l, t) in s.levels.iter().zip(s.traffic.levels.iter()) { println!("{l:?}\n   {t:?}"); }
    let c = out.course();
    println!("WA {:.2} runs {:.2} {}", c.write_amplification, c.runs_per_seek, c.runs_per_seek_most);
    println!("{:?}", start.elapsed());
}
