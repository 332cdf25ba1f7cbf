//! Compares our disassembler with nvdisasm on whole cubins.
//!
//! Every kernel of the executed cases and of the corpus, compiled by ptxas (-O0 and -O3) and by us:
//! each line of our listing must equal that of nvdisasm and assemble to its word. The words of a
//! target are disassembled in one batch. Our files are also passed one by one, because nvdisasm and
//! cuobjdump must accept them as files.
//!
//! By default a source takes one target of each group (`support/turns.rs`), ptxas's at -O0 every
//! other one. Of two thirds of the sources, our file for one of these targets is read by nvdisasm,
//! of a third of all by cuobjdump, too, which runs nvdisasm again. `SASSAFRAS_ORACLE=all` takes
//! every source on every target, with every file through both.

use crate::listed::{Line, Wrong};
use crate::simulate_ptxas_support::each;
use crate::{listed, ours, ptxas, turns, vendor};
use sassafras::sim::launch::LaunchFile;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::rc::Rc;
use std::sync::Mutex;

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
    turns::targets().filter(|sm| sms.is_empty() || sms.split(',').any(|s| s == format!("sm_{sm}"))).collect()
}

/// The sources with the targets that each takes.
fn plan() -> Vec<(PathBuf, Vec<&'static str>)> {
    let plan: Vec<_> = listed::sources()
        .into_iter()
        .map(|source| {
            let own = turns::of(&source, |sm| listed::is_for(&source, sm));
            (source, own)
        })
        .collect();
    turns::assert_covered(plan.iter().flat_map(|(_, own)| own.iter().copied()), LEAST);
    plan
}

/// Least number of sources of a target.
const LEAST: usize = 50;

/// What a judge finds on all targets, with the sources of each.
fn on_each_target(judge: impl Fn(&'static str, &[&Path]) -> Wrong + Sync) -> Wrong {
    let plan = plan();
    let found = each(&targets(), |sm| {
        let own: Vec<&Path> = plan.iter().filter(|(_, own)| own.contains(sm)).map(|(path, _)| path.as_path()).collect();
        judge(sm, &own)
    });
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
    let whole = turns::all() || std::env::var_os("SASSAFRAS_SM").is_some();
    let wrong = on_each_target(|sm, sources| {
        let mut wrong = Wrong::default();
        let program = vendor::tool_of("ptxas", sm).expect("ptxas");
        let mut batch = Batch::new(sm);
        for source in sources {
            let text = std::fs::read(source).expect("a PTX file");
            let own = turns::of(source, |sm| listed::is_for(source, sm));
            let at = own.iter().position(|own| *own == sm).unwrap_or(0);
            let both = whole || (turns::turn(source) / 6 + at).is_multiple_of(2);
            for level in if both { &["-O0", "-O3"][..] } else { &["-O3"] } {
                let bytes = ptxas::cubin(&program, &text, sm, level);
                let bytes = bytes.unwrap_or_else(|said| panic!("{} for sm_{sm}: {said}", source.display()));
                batch.add(&format!("{} {level}", stem(source)), &bytes, &mut wrong);
            }
        }
        batch.judge(&mut wrong);
        wrong
    });
    let list = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/oracle/not_yet.txt");
    wrong.report_except(&list, turns::all() && std::env::var_os("SASSAFRAS_SM").is_none());
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
    let all = turns::all() || std::env::var_os("SASSAFRAS_SM").is_some();
    let dir = tempfile::tempdir().expect("a temporary folder");
    let (read, dumped) = (Mutex::new(Vec::new()), Mutex::new(Vec::new()));
    let wrong = on_each_target(|sm, sources| {
        let mut wrong = Wrong::default();
        let mut batch = Batch::new(sm);
        let out = dir.path().join(format!("{sm}.cubin"));
        for source in sources {
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
            let turn = turns::turn(source);
            let own = turns::of(source, |sm| listed::is_for(source, sm));
            if all || own[turn / 6 % own.len()] == sm && turn / 42 % 3 != 2 {
                std::fs::write(&out, compiled).expect("a cubin written");
                let dump = all || (turn / 42).is_multiple_of(3);
                judge_file(sm, &stem(source), compiled, &out, dump, &mut wrong);
                read.lock().expect("no panic").push(sm);
                dumped.lock().expect("no panic").extend(dump.then_some(sm));
            }
        }
        batch.judge(&mut wrong);
        wrong
    });
    turns::assert_covered(read.into_inner().expect("no panic"), 2);
    turns::assert_covered(dumped.into_inner().expect("no panic"), 1);
    wrong.report();
}

/// Compares one of our files with `nvdisasm -c`, line by line; with `dump`, `cuobjdump -sass` must
/// list its functions.
fn judge_file(sm: &str, origin: &str, bytes: &[u8], path: &Path, dump: bool, wrong: &mut Wrong) {
    let (ours, theirs) = match (listed::ours(bytes), listed::theirs(path, sm)) {
        (Ok(ours), Ok(theirs)) => (ours, theirs),
        (ours, theirs) => {
            return wrong.add(sm, "file", format!("{origin}: {:?} {:?}", ours.err(), theirs.err()));
        }
    };
    let dumped = dump.then(|| cuobjdump(path, sm));
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
            None => {}
            Some(Ok(text)) if text.contains(&format!("Function : {name}\n")) => {}
            Some(Ok(_)) => wrong.add(sm, "cuobjdump", format!("{origin}: cuobjdump -sass does not show {name}")),
            Some(Err(error)) => wrong.add(sm, "cuobjdump", format!("{origin}: {error}")),
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
