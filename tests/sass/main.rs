//! Words, texts and control words of SASS, beside NVIDIA's tools and by themselves.

mod compare;
mod estimate;
mod hazards;
mod oracle_sass;
mod oracle_words;
mod pair_distances;
mod real_programs;
mod sass_forms;

#[allow(dead_code)]
#[path = "../support/cases.rs"]
mod cases;
#[allow(dead_code)]
#[path = "../support/diff.rs"]
mod diff;
#[allow(dead_code)]
#[path = "../support/gathered.rs"]
mod gathered;
#[allow(dead_code)]
#[path = "../support/manifest.rs"]
mod manifest;
#[allow(dead_code)]
#[path = "../support/ptxas.rs"]
mod ptxas;
#[allow(dead_code)]
#[path = "../support/vendor.rs"]
mod vendor;
#[allow(dead_code)]
#[path = "../support/words.rs"]
mod words;
