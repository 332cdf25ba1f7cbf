//! Parses the compiler's arguments by the table of options.
//!
//! The result has the input files and the options with their values. Words are read as ptxas reads
//! them: `-name value`, `-name=value`, `--name value`, `--name=value`, and a number attached to a
//! letter (`-O2`, `-m64`). If an option is repeated, the last one counts; list options accumulate.

use super::options::{Effect, Key, OptionRow, Takes, find};
use std::path::PathBuf;

/// Deepest nesting of option files.
const MAX_FILES: usize = 16;

/// An input: a file or a PTX text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    File(PathBuf),
    Stdin,
    /// `--input-as-string`
    Text(String),
}

/// The parsed arguments.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Arguments {
    /// In the order of the command line, texts after files.
    pub inputs: Vec<Input>,
    values: Vec<(Key, &'static str, String)>,
    /// Warnings about the arguments themselves.
    pub warnings: Vec<String>,
}

impl Arguments {
    /// Parses the words. The error is the text after `fatal   : `.
    pub fn parse(words: &[String]) -> Result<Arguments, String> {
        let mut arguments = Arguments::default();
        arguments.take(words, 0)?;
        // Texts given on the command line come after the files.
        crate::sorted::by_key(&mut arguments.inputs, |input| matches!(input, Input::Text(_)));
        Ok(arguments)
    }

    /// Whether an option was given.
    pub fn has(&self, key: Key) -> bool {
        self.values.iter().any(|(k, _, _)| *k == key)
    }

    /// The value of an option.
    pub fn value(&self, key: Key) -> Option<&str> {
        self.values.iter().rev().find(|(k, _, _)| *k == key).map(|(_, _, value)| value.as_str())
    }

    /// The value of the option with this long name, for a key that several options share.
    pub fn value_of(&self, key: Key, long: &str) -> Option<&str> {
        let named = |(k, name, _): &&(Key, &'static str, String)| *k == key && *name == long;
        self.values.iter().rev().find(named).map(|(_, _, value)| value.as_str())
    }

    /// All values of a list option, split at commas.
    pub fn list(&self, key: Key) -> Vec<String> {
        let given = self.values.iter().filter(|(k, _, _)| *k == key);
        given.flat_map(|(_, _, value)| value.split(',')).filter(|v| !v.is_empty()).map(str::to_string).collect()
    }

    fn take(&mut self, words: &[String], depth: usize) -> Result<(), String> {
        let mut words = words.iter();
        while let Some(word) = words.next() {
            if word == "-" {
                self.inputs.push(Input::Stdin);
                continue;
            }
            let Some(name) = word.strip_prefix('-') else {
                self.inputs.push(Input::File(word.into()));
                continue;
            };
            let (row, glued) = spelled(name)?;
            let value = match (row.takes, glued) {
                (Takes::Nothing, None) => String::new(),
                (Takes::Nothing, Some(_)) => {
                    let bare = word.split('=').next().unwrap_or(word);
                    return Err(format!("no argument expected after '{bare}'"));
                }
                (_, Some(value)) => value,
                // The number is attached; `-O` alone takes the default.
                (_, None) if word == "-O" => "3".to_string(),
                (_, None) => words.next().ok_or_else(|| format!("argument expected after '{word}'"))?.clone(),
            };
            check(row, &value)?;
            self.enter(row, value, depth)?;
        }
        Ok(())
    }

    fn enter(&mut self, row: &'static OptionRow, value: String, depth: usize) -> Result<(), String> {
        match row.effect {
            Effect::Nothing(_) => {}
            Effect::Refused(why) => return Err(format!("Option '{}' is refused: {why}", row.long)),
            Effect::Only(good, _) if value == good => {}
            Effect::Only(_, why) => return Err(format!("Option '{}={value}' is refused: {why}", row.long)),
            Effect::Acts(Key::InputAsString) => self.inputs.push(Input::Text(value)),
            Effect::Acts(Key::OptionsFile) => {
                for file in value.split(',') {
                    if depth >= MAX_FILES {
                        return Err(format!("Too many options file opened '{file}'"));
                    }
                    let text = std::fs::read_to_string(file);
                    let text = text.map_err(|_| format!("Could not open options file '{file}'"))?;
                    self.take(&split(&text), depth + 1)?;
                }
            }
            Effect::Acts(key) => {
                let other = self.values.iter().any(|(k, name, old)| *k == key && *name == row.long && *old != value);
                if other && row.takes != Takes::List {
                    let (name, rest) = (row.long, "the last value of this option was used");
                    self.warnings.push(format!("incompatible redefinition for option '{name}', {rest}"));
                }
                self.values.push((key, row.long, value));
            }
        }
        Ok(())
    }
}

/// The row of a name after one dash (a second may follow), and a value attached to it.
fn spelled(name: &str) -> Result<(&'static OptionRow, Option<String>), String> {
    let (bare, glued) = name.split_once('=').map_or((name, None), |(n, v)| (n, Some(v.to_string())));
    let found = match bare.strip_prefix('-') {
        Some(long) => find(long, true),
        None => find(bare, false),
    };
    if let Some(row) = found {
        return Ok((row, glued));
    }
    // A letter that takes a number may have it attached.
    let letter = bare.chars().next().map_or(0, char::len_utf8);
    let row = find(&bare[..letter], false).filter(|row| matches!(row.takes, Takes::Number | Takes::OneOf(_)));
    match row {
        Some(row) if bare.len() > letter => Ok((row, Some(bare[letter..].to_string()))),
        _ => Err(format!("Unknown option '{bare}'")),
    }
}

fn check(row: &OptionRow, value: &str) -> Result<(), String> {
    match row.takes {
        Takes::Number if value.parse::<i64>().is_err() => Err(format!("'{value}': expected a number")),
        Takes::Bool if !matches!(value, "true" | "false") => Err(format!("'{value}': expected true or false")),
        Takes::OneOf(words) if !words.contains(&value) => {
            Err(format!("Value '{value}' is not defined for option '{}'", row.long))
        }
        _ => Ok(()),
    }
}

/// Splits an options file at white space; quotes group words.
fn split(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    for c in text.chars() {
        match (c, quote) {
            (c, Some(q)) if c == q => quote = None,
            (c, Some(_)) => word.get_or_insert_default().push(c),
            ('"' | '\'', None) => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (c, None) if c.is_whitespace() => words.extend(word.take()),
            (c, None) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Arguments, String> {
        Arguments::parse(&split(line))
    }

    #[test]
    fn spellings() {
        for line in ["-arch=sm_90", "-arch sm_90", "--gpu-name=sm_90", "--gpu-name sm_90", "-arch sm_80 -arch=sm_90"] {
            assert_eq!(parse(line).unwrap().value(Key::Target), Some("sm_90"), "{line}");
        }
        for line in ["-O2", "-O=2", "--opt-level 2", "--opt-level=2"] {
            assert_eq!(parse(line).unwrap().value(Key::Level), Some("2"), "{line}");
        }
        let all = parse("-m64 -m 64 --machine=64 -v -w -Werror k.ptx - -o x -e a,b -e c").unwrap();
        assert_eq!(all.inputs, [Input::File("k.ptx".into()), Input::Stdin]);
        assert_eq!(all.list(Key::Entry), ["a", "b", "c"]);
        assert!(all.has(Key::Verbose) && all.has(Key::NoWarnings) && all.has(Key::WarningsAreErrors));
        assert_eq!(parse("-arch=sm_80 -arch=sm_90").unwrap().warnings.len(), 1);
        assert_eq!(parse("-arch=sm_80 -arch=sm_80").unwrap().warnings.len(), 0);
    }

    #[test]
    fn refusals_are_in_ptxas_words() {
        for (line, want) in [
            ("-bogus k", "Unknown option 'bogus'"),
            ("--bogus=3", "Unknown option '-bogus'"),
            ("--arch=sm_80", "Unknown option '-arch'"),
            ("-oo.o", "Unknown option 'oo.o'"),
            ("-arch", "argument expected after '-arch'"),
            ("-v=true", "no argument expected after '-v'"),
            ("-fmad=maybe", "'maybe': expected true or false"),
            ("-Ox", "'x': expected a number"),
            ("-m32", "Value '32' is not defined for option 'machine'"),
            ("-sanitize=foo", "Value 'foo' is not defined for option 'sanitize'"),
            ("-optf /no/such", "Could not open options file '/no/such'"),
            (
                "-device-stack-protector=true",
                "Option 'device-stack-protector=true' is refused: stack canaries are not built",
            ),
            ("-astoolspatch", "Option 'compile-as-tools-patch' is refused: code for tools is not built"),
        ] {
            assert_eq!(parse(line), Err(want.to_string()), "{line}");
        }
    }

    #[test]
    fn options_of_ptxas_have_rows() {
        let tool = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("target/vendor/ptxas");
        if !tool.exists() {
            println!("skipped: no ptxas at target/vendor");
            return;
        }
        let out = std::process::Command::new(tool).arg("--help").output().unwrap();
        let text = String::from_utf8_lossy(&out.stdout).into_owned();
        let mut seen = 0;
        for line in text.lines().filter(|l| l.starts_with("--")) {
            let long = line[2..].split(' ').next().unwrap();
            let short = line.split("(-").nth(1).map(|s| s.trim_end().trim_end_matches(')'));
            let row = find(long, true).unwrap_or_else(|| panic!("{long} has no row"));
            assert!(short.is_none_or(|short| short == row.short), "{long}: {short:?}");
            seen += 1;
        }
        assert!(seen > 50, "{seen}");
    }
}
