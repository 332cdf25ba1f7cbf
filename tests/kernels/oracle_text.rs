//! Compares our disassembler with nvdisasm on whole cubins.
//!
//! Every kernel of the executed cases and of the corpus, on every target, compiled by ptxas (-O0
//! and -O3) and by us: each line of our listing must equal that of nvdisasm and assemble to its
//! word. The words of a target are disassembled in one batch. Our files are also passed one by one,
//! because nvdisasm must accept them as files: with `SASSAFRAS_ORACLE=all` each of them, otherwise
//! each kernel on one target.

use crate::listed::{Line, TARGETS, Wrong};
use crate::simulate_ptxas_support::each;
use crate::{listed, ours, ptxas, vendor};
use sassafras::sim::launch::LaunchFile;
use std::collections::HashMap;
use std::path::Path;
use std::process::Command;
use std::rc::Rc;

/// The code of one target, disassembled in one batch.
struct Batch {
    sm: &'static str,
    /// The distinct words, and the place of each among them: nvdisasm's text of a word is the same
    /// wherever it stands, but for the address of a branch.
    words: Vec<u128>,
    places: HashMap<u128, usize>,
    /// For each word of the code: its origin and our text.
    lines: Vec<(Rc<str>, Line)>,
}

impl Batch {
    fn new(sm: &'static str) -> Batch {
        Batch { sm, words: Vec::new(), places: HashMap::new(), lines: Vec::new() }
    }

    fn add(&mut self, origin: &str, bytes: &[u8], wrong: &mut Wrong) {
        let functions = match listed::ours(bytes) {
            Ok(functions) => functions,
            Err(error) => return wrong.add(self.sm, "file", format!("{origin}: {error}")),
        };
        for (name, lines) in functions {
            let origin: Rc<str> = format!("{origin} {name}").into();
            for line in lines {
                self.places.entry(line.word).or_insert_with(|| {
                    self.words.push(line.word);
                    self.words.len() - 1
                });
                self.lines.push((origin.clone(), line));
            }
        }
    }

    /// Compares every line with nvdisasm's text of its word.
    fn judge(self, wrong: &mut Wrong) {
        let texts = vendor::disassemble(&self.words, self.sm);
        println!("sm_{}: {} words, {} distinct ones", self.sm, self.lines.len(), self.words.len());
        assert!(self.lines.len() > 1000, "only {} words for sm_{}", self.lines.len(), self.sm);
        for (origin, line) in self.lines {
            let place = self.places[&line.word];
            let theirs = texts[place].as_deref().unwrap_or("(refused)");
            let ours = listed::moved(&line, theirs, place as u64 * 16);
            if ours != theirs || !line.error.is_empty() {
                let at = format!("{origin} {:#06x} {:032x}", line.offset, line.word);
                wrong.add(self.sm, theirs, format!("{at}\n  ours   {ours}\n  theirs {theirs}\n  {}", line.error));
            }
        }
    }
}

fn missing() -> bool {
    let missing: Vec<_> = ["ptxas", "nvdisasm", "cuobjdump"]
        .into_iter()
        .filter(|t| targets().iter().any(|sm| vendor::tool_of(t, sm).is_none()))
        .collect();
    if !missing.is_empty() {
        println!("skipped: no {} in target/vendor", missing.join(", "));
    }
    !missing.is_empty()
}

/// The targets, or those that `SASSAFRAS_SM` names.
fn targets() -> Vec<&'static str> {
    let sms = std::env::var("SASSAFRAS_SM").unwrap_or_default();
    TARGETS.into_iter().filter(|sm| sms.is_empty() || sms.split(',').any(|s| s == format!("sm_{sm}"))).collect()
}

/// What a judge finds on all targets; it gets the number of each among them, and its name.
fn on_each_target(judge: impl Fn(usize, &'static str) -> Wrong + Sync) -> Wrong {
    let targets: Vec<_> = targets().into_iter().enumerate().collect();
    let found = each(&targets, |(number, sm)| judge(*number, sm));
    found.into_iter().fold(Wrong::default(), Wrong::with)
}

fn stem(path: &Path) -> String {
    path.file_stem().map(|s| s.to_string_lossy().into_owned()).unwrap_or_default()
}

#[test]
fn the_ptxas_code_prints_and_assembles() {
    if missing() {
        return;
    }
    let wrong = on_each_target(|_, sm| {
        let mut wrong = Wrong::default();
        let program = vendor::tool_of("ptxas", sm).expect("ptxas");
        let mut batch = Batch::new(sm);
        for source in listed::sources().into_iter().filter(|s| listed::is_for(s, sm)) {
            let text = std::fs::read(&source).expect("a PTX file");
            for level in ["-O0", "-O3"] {
                let bytes = ptxas::cubin(&program, &text, sm, level);
                let bytes = bytes.unwrap_or_else(|said| panic!("{} for sm_{sm}: {said}", source.display()));
                batch.add(&format!("{} {level}", stem(&source)), &bytes, &mut wrong);
            }
        }
        batch.judge(&mut wrong);
        wrong
    });
    wrong.report_except(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/oracle/not_yet.txt"));
}

/// Whether the launches of a case are for other targets only.
fn is_elsewhere(source: &Path, sm: &str) -> bool {
    let file = LaunchFile::load(&source.with_extension("ron"));
    file.is_ok_and(|file| !file.launches.iter().any(|launch| launch.wants(&format!("sm_{sm}"))))
}

#[test]
fn our_code_prints_as_nvdisasm_prints_it() {
    if missing() {
        return;
    }
    let all = std::env::var("SASSAFRAS_ORACLE").is_ok_and(|v| v == "all");
    let dir = tempfile::tempdir().expect("a temporary folder");
    let wrong = on_each_target(|t, sm| {
        let mut wrong = Wrong::default();
        let mut batch = Batch::new(sm);
        let out = dir.path().join(format!("{sm}.cubin"));
        for (s, source) in listed::sources().iter().enumerate().filter(|(_, s)| listed::is_for(s, sm)) {
            let ptx = std::fs::read_to_string(source).expect("a PTX file");
            let made = ours::cubin(&ptx, &format!("sm_{sm}"));
            let compiled = match made.as_ref() {
                Ok(cubin) => cubin,
                Err(errors)
                    if is_elsewhere(source, sm) && errors.iter().all(|e| e.message.ends_with("is not implemented")) =>
                {
                    continue;
                }
                Err(errors) => {
                    wrong.add(sm, "compile", format!("{}: {errors:?}", source.display()));
                    continue;
                }
            };
            batch.add(&stem(source), compiled, &mut wrong);
            if all || (s + t) % TARGETS.len() == 0 {
                std::fs::write(&out, compiled).expect("a cubin written");
                judge_file(sm, &stem(source), compiled, &out, &mut wrong);
            }
        }
        batch.judge(&mut wrong);
        wrong
    });
    wrong.report();
}

/// Compares one of our files with `nvdisasm -c`, line by line; `cuobjdump -sass` must list its
/// functions.
fn judge_file(sm: &str, origin: &str, bytes: &[u8], path: &Path, wrong: &mut Wrong) {
    let (ours, theirs) = match (listed::ours(bytes), listed::theirs(path, sm)) {
        (Ok(ours), Ok(theirs)) => (ours, theirs),
        (ours, theirs) => {
            return wrong.add(sm, "file", format!("{origin}: {:?} {:?}", ours.err(), theirs.err()));
        }
    };
    let dumped = cuobjdump(path, sm);
    for (name, lines) in ours {
        let ours: Vec<_> = lines.into_iter().map(|l| (l.offset, l.text)).collect();
        let theirs = theirs.get(&name).cloned().unwrap_or_default();
        if ours.len() != theirs.len() {
            wrong.add(sm, "length", format!("{origin} {name}: {} lines, theirs {}", ours.len(), theirs.len()));
        }
        for (ours, theirs) in ours.iter().zip(&theirs).filter(|(o, t)| o != t) {
            wrong.add(sm, &theirs.1, format!("{origin} {name}\n  ours   {ours:x?}\n  theirs {theirs:x?}"));
        }
        match &dumped {
            Ok(text) if text.contains(&format!("Function : {name}\n")) => {}
            Ok(_) => wrong.add(sm, "cuobjdump", format!("{origin}: cuobjdump -sass does not show {name}")),
            Err(error) => wrong.add(sm, "cuobjdump", format!("{origin}: {error}")),
        }
    }
}

/// The output of `cuobjdump -sass`, which looks for nvdisasm on the path.
fn cuobjdump(path: &Path, sm: &str) -> Result<String, String> {
    let tool = vendor::tool_of("cuobjdump", sm).ok_or("no cuobjdump")?;
    let folder = tool.parent().map(|p| p.display().to_string()).unwrap_or_default();
    let search = format!("{folder}:{}", std::env::var("PATH").unwrap_or_default());
    let run = Command::new(&tool).arg("-sass").arg(path).env("PATH", search).output().map_err(|e| e.to_string())?;
    match run.status.success() && run.stderr.is_empty() {
        true => Ok(String::from_utf8_lossy(&run.stdout).into_owned()),
        false => Err(format!("cuobjdump -sass: {}", String::from_utf8_lossy(&run.stderr))),
    }
}
