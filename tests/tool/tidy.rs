//! The rules of the repository that a test can check: permitted imports between modules, no SM
//! number outside the tables, no absolute path of a developer's machine, readable file sizes.

use std::path::{Path, PathBuf};

/// What extends the standard library and may be used anywhere.
const EVERYWHERE: [&str; 2] = ["arrays", "sorted"];

/// For each folder of `src/`, the folders it may import. A folder may always import itself.
const IMPORTS: [(&str, &[&str]); 38] = [
    ("arrays", &[]),
    ("sorted", &[]),
    ("tables", &[]),
    ("diag", &[]),
    ("ptx", &["tables", "diag"]),
    ("ori", &["tables"]),
    // The cubin's model is plain data, into which lowering writes the launch facts.
    ("lower", &["ptx", "ori", "tables", "diag", "cubin"]),
    ("analysis", &["ori", "tables"]),
    ("legal", &["analysis", "ori", "tables"]),
    ("interprocedural", &["analysis", "legal", "lower", "ori", "tables", "threads"]),
    ("helper", &["alloc", "diag", "interprocedural", "legal", "lower", "ori", "pass", "pipeline", "ptx", "tables"]),
    ("opt", &["analysis", "ori", "tables"]),
    ("alloc", &["analysis", "ori", "tables"]),
    ("group", &["analysis", "ori", "tables"]),
    ("reconverge", &["analysis", "ori", "tables"]),
    ("sched", &["analysis", "ori", "tables"]),
    ("control", &["analysis", "ori", "sched", "tables"]),
    ("uniform", &["analysis", "legal", "ori", "tables"]),
    ("cubin", &["tables"]),
    ("sass", &["tables", "cubin"]),
    // The generated dispatcher names every folder that has passes.
    ("pass", &["analysis", "legal", "ori", "pipeline", "tables"]),
    ("pipeline", &["ori", "sass", "tables"]),
    ("bisect", &["compile", "pass", "sim", "tables"]),
    ("compare", &["cubin", "sass", "sim", "tables"]),
    ("sim", &["tables", "diag", "ptx", "sass", "cubin"]),
    ("kernel_image", &["alloc", "cubin", "lower", "pipeline", "tables"]),
    (
        "compile",
        &[
            "analysis",
            "kernel_image",
            "cubin",
            "debug",
            "diag",
            "helper",
            "interprocedural",
            "legal",
            "lower",
            "ori",
            "pass",
            "pipeline",
            "ptx",
            "references",
            "search",
            "warnings",
            "shader_info",
            "source_lines",
            "tables",
            "threads",
        ],
    ),
    ("references", &["cubin", "ptx", "tables"]),
    ("search", &["analysis", "ori", "pipeline", "sass", "sim", "tables"]),
    ("shader_info", &["diag"]),
    ("threads", &[]),
    ("warnings", &["diag", "lower", "ptx", "tables"]),
    ("source_lines", &["cubin", "diag", "ptx", "tables"]),
    ("debug", &["cubin", "diag", "lower", "pipeline", "ptx", "tables"]),
    ("gpu", &["cubin", "sim", "tables"]),
    (
        "cli",
        &[
            "bisect",
            "compare",
            "compile",
            "cubin",
            "debug",
            "diag",
            "gpu",
            "helper",
            "pass",
            "sass",
            "search",
            "shader_info",
            "sim",
            "tables",
            "threads",
        ],
    ),
    // Parts of the program, not of the library.
    ("memory", &[]),
    ("lib", &[]),
];

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn files(folder: &Path, extension: &str, out: &mut Vec<PathBuf>) {
    let mut entries: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            files(&path, extension, out);
        } else if path.extension().is_some_and(|e| e == extension) {
            out.push(path);
        }
    }
}

fn sources() -> Vec<(String, String)> {
    let mut paths = Vec::new();
    files(&root().join("src"), "rs", &mut paths);
    let name = |p: &Path| p.strip_prefix(root()).unwrap().to_string_lossy().into_owned();
    paths.iter().map(|p| (name(p), std::fs::read_to_string(p).unwrap())).collect()
}

/// Whether a file has only unit tests.
fn is_test(name: &str) -> bool {
    name.contains("tests")
}

/// The part of a file before its unit tests, without comments.
fn code(text: &str) -> String {
    let body = text.split("#[cfg(test)]").next().unwrap_or("");
    body.lines().map(|l| l.split("//").next().unwrap_or("")).collect::<Vec<_>>().join("\n")
}

#[test]
fn folders_import_only_what_they_may() {
    let mut wrong = Vec::new();
    for (name, text) in sources() {
        let folder = name.trim_start_matches("src/").split(['/', '.']).next().unwrap().to_string();
        if folder == "main" || folder == "bin" {
            continue;
        }
        let Some((_, allowed)) = IMPORTS.iter().find(|r| r.0 == folder) else {
            wrong.push(format!("{name}: `{folder}` is no folder of the layout"));
            continue;
        };
        for (_, rest) in code(&text).match_indices("crate::").map(|(i, m)| (i, code(&text)[i + m.len()..].to_string()))
        {
            let other: String = rest.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect();
            let known = other == folder || EVERYWHERE.contains(&other.as_str());
            if !other.is_empty() && !known && !allowed.contains(&other.as_str()) {
                wrong.push(format!("{name}: imports `{other}`"));
            }
        }
    }
    wrong.sort();
    wrong.dedup();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn no_sm_number_in_code() {
    let mut wrong = Vec::new();
    for (name, text) in sources().into_iter().filter(|s| !is_test(&s.0)) {
        for (number, line) in code(&text).lines().enumerate() {
            let squeezed: String = line.chars().filter(|c| !c.is_whitespace()).collect();
            let compared = ["sm>=", "sm<=", "sm==", "sm<", "sm>", ".sm!="].iter().any(|op| {
                squeezed.find(op).is_some_and(|i| squeezed[i + op.len()..].starts_with(|c: char| c.is_ascii_digit()))
            });
            let named =
                squeezed.match_indices("sm_").any(|(i, _)| squeezed[i + 3..].starts_with(|c: char| c.is_ascii_digit()));
            if compared || named {
                wrong.push(format!("{name}:{}: {}", number + 1, line.trim()));
            }
        }
    }
    assert!(wrong.is_empty(), "an SM number in code, where a feature should be asked:\n{}", wrong.join("\n"));
}

/// Words with a standard term in their place: (word, term).
const OLD_WORDS: [(&str, &str); 6] = [
    ("incumbent", "ptxas"),
    ("the vendor", "NVIDIA, or the tool by its name"),
    ("the machine", "the simulator"),
    ("the card", "the GPU"),
    ("of the house", "of the repository"),
    ("//! Input: ", "a header of plain sentences, without a fixed form"),
];

#[test]
fn standard_terms_only() {
    let mut wrong = Vec::new();
    let mut paths = Vec::new();
    for (folder, extension) in [("src", "rs"), ("tests", "rs"), ("codegen", "rs"), ("tables", "ron"), ("tests", "md")] {
        files(&root().join(folder), extension, &mut paths);
    }
    for path in
        paths.iter().filter(|p| !p.ends_with("tests/tool/tidy.rs") && !p.starts_with(root().join("codegen/target")))
    {
        let text = std::fs::read_to_string(path).unwrap();
        for (number, line) in text.lines().enumerate() {
            for (word, term) in OLD_WORDS.iter().filter(|w| line.contains(w.0)) {
                wrong.push(format!("{}:{}: `{word}`: write {term}", path.display(), number + 1));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn comment_lines_have_at_most_100_columns() {
    let mut paths = Vec::new();
    ["src", "tests", "codegen/src", "codegen/tests"].iter().for_each(|f| files(&root().join(f), "rs", &mut paths));
    let mut long = Vec::new();
    for path in &paths {
        let text = std::fs::read_to_string(path).unwrap();
        // A line without a space cannot be wrapped.
        let wide = |line: &str| {
            let text = line.trim_start();
            text.starts_with("//") && line.chars().count() > 100 && text.matches(' ').count() > 1
        };
        long.extend(
            text.lines().enumerate().filter(|(_, l)| wide(l)).map(|(n, _)| format!("{}:{}", path.display(), n + 1)),
        );
    }
    assert!(long.is_empty(), "{}", long.join("\n"));
}

#[test]
fn every_variable_of_the_tests_is_on_their_page() {
    let mut paths = Vec::new();
    ["tests", "src", "codegen/tests"].iter().for_each(|f| files(&root().join(f), "rs", &mut paths));
    let page = std::fs::read_to_string(root().join("tests/README.md")).unwrap();
    let mut missing = std::collections::BTreeSet::new();
    for path in &paths {
        let text = std::fs::read_to_string(path).unwrap();
        for quoted in text.split('"').filter(|s| s.starts_with("SASSAFRAS_")) {
            let name: String = quoted.chars().take_while(|c| c.is_ascii_uppercase() || *c == '_').collect();
            // A driver of our own reads it from the test that starts it.
            if !name.ends_with('_') && name != "SASSAFRAS_DRIVER_FLIPS" && !page.contains(&format!("`{name}=")) {
                missing.insert(name);
            }
        }
    }
    assert!(missing.is_empty(), "not in tests/README.md: {missing:?}");
}

/// Files outside of `lower`, `legal` and `sim` with lists of opcodes, how many, and why what they
/// say is no property of a row.
const OPCODE_LISTS: [(&str, usize, &str); 18] = [
    (
        "src/alloc/check/mod.rs",
        4,
        "the checker follows what each opcode does, and shares no property with the allocator",
    ),
    ("src/alloc/lower_copies.rs", 1, "the instructions that write a barrier or keep it in a register"),
    ("src/analysis/bit_flow.rs", 1, "a rule of its own for carries, where a modifier allows it"),
    ("src/control/control_words.rs", 1, "one of the two only with a modifier"),
    ("src/group/stages.rs", 1, "two arms of a walk that does something else for each opcode"),
    ("src/opt/combine/extremes.rs", 1, "rules: two operations, and what does both"),
    ("src/opt/combine/fuse.rs", 1, "dispatch to the rule of each opcode"),
    ("src/opt/constants/value.rs", 4, "dispatch to the arithmetic of each opcode"),
    ("src/opt/copy_propagation.rs", 1, "the two pseudo-operations that take any register"),
    ("src/opt/guarded_selects.rs", 2, "the two opcodes that the pass rewrites"),
    ("src/opt/local_memory/addresses.rs", 1, "the two opcodes of generic addresses, with a rule of their own"),
    ("src/opt/redundant_writes.rs", 1, "the two moves to the uniform file that are the same again"),
    ("src/opt/unroll/mod.rs", 1, "the two pseudo-operations that count as nothing"),
    ("src/opt/wide_forms/mod.rs", 3, "dispatch to the rule of each opcode"),
    ("src/sass/flow.rs", 1, "where each opcode of control flow goes"),
    ("src/sass/widths.rs", 12, "the words of each operand, by the modifiers that its opcode has"),
    ("src/uniform/shader_constants/classes.rs", 3, "the published class of roots that each opcode has"),
    ("src/uniform/rewrite.rs", 1, "two pseudo-operations that are made anew with the same operands"),
];

/// How many lists a text has of two opcodes or more: alternatives, comparisons with one value,
/// arrays of opcodes, and arrays of tuples that begin with one.
fn opcode_lists(text: &str) -> usize {
    let squeezed: String = text.chars().filter(|c| !c.is_whitespace()).collect();
    let (mut lists, mut at) = (0, 0);
    while let Some(found) = squeezed[at..].find("Op::") {
        let start = at + found;
        let before = &squeezed[..start];
        let (mut names, mut end) = (usize::from(before.ends_with("[(")), start);
        let mut length = opcode_name(&squeezed[end..]);
        while length > 0 {
            (names, end) = (names + 1, end + length);
            let rest = &squeezed[end..];
            let comma = rest.starts_with(',') && before.ends_with('[');
            let compared = rest.strip_prefix("||").and_then(|other| other.split_once("==Op::"));
            let value = |text: &str| text.chars().all(|c| c.is_alphanumeric() || "._[]*".contains(c));
            let skip = match compared.filter(|(left, _)| value(left)) {
                Some((left, _)) => "||==".len() + left.len(),
                None if comma || rest.starts_with('|') && !rest.starts_with("||") => 1,
                None => break,
            };
            length = opcode_name(&rest[skip..]);
            end += if length > 0 { skip } else { 0 };
        }
        lists += usize::from(names > 1);
        at = end.max(start + "Op::".len());
    }
    lists
}

/// The length of the name of an opcode at the start of a text, with `Op::`; 0 if there is none.
fn opcode_name(text: &str) -> usize {
    let name = text.strip_prefix("Op::").filter(|name| name.starts_with(|c: char| c.is_ascii_uppercase()));
    let length = |name: &str| name.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').count();
    name.map_or(0, |name| "Op::".len() + length(name))
}

#[test]
fn lists_of_opcodes_are_properties_of_their_rows() {
    assert_eq!(opcode_lists("matches!(op, Op::A | Op::B) && op == Op::C"), 1);
    assert_eq!(opcode_lists("[Op::A, Op::B]; data.op == Op::C || data.op == Op::D"), 2);
    assert_eq!(opcode_lists("[(Op::A, 16), (Op::B, 32)]; [Op::A]; (Op::A, Op::B)"), 1);
    assert_eq!(opcode_lists("Op::A => Op::B, _ if op == Op::C || ready(Op::D) => set(Op::E, Role::D)"), 0);
    let exempt = ["src/lower/", "src/legal/", "src/sim/"];
    let (mut wrong, mut met) = (Vec::new(), Vec::new());
    for (name, text) in sources().into_iter().filter(|s| !is_test(&s.0)) {
        let lists = opcode_lists(&code(&text));
        let listed = OPCODE_LISTS.iter().find(|file| file.0 == name);
        met.extend(listed.map(|file| file.0));
        let allowed = listed.map_or(0, |file| file.1);
        if lists != allowed && !exempt.iter().any(|folder| name.starts_with(folder)) {
            wrong.push(format!("{name}: {lists} lists of opcodes, not {allowed}"));
        }
    }
    wrong.extend(OPCODE_LISTS.iter().filter(|file| !met.contains(&file.0)).map(|file| format!("{}: is gone", file.0)));
    let hint = "make a property of tables/ori/properties.ron of what the opcodes have in common, or give a reason";
    assert!(wrong.is_empty(), "{hint}:\n{}", wrong.join("\n"));
}

/// Folders and files in which printed texts mean something: they read or write them.
const OF_TEXTS: [&str; 7] = ["lower/", "legal/", "sim/", "cli/", "tables/", "sass/text.rs", "sass/parse.rs"];

/// How often a text asks for what is printed of a modifier or of a special register.
fn asked_texts(text: &str) -> usize {
    let squeezed: String = text.chars().filter(|c| !c.is_whitespace()).collect();
    let calls = squeezed.match_indices(".text(").filter(|(at, call)| {
        let of = squeezed[..*at].rsplit(|c: char| !c.is_alphanumeric() && c != ':').next().unwrap_or("");
        let value = squeezed[at + call.len()..].split([')', ';']).next().unwrap_or("");
        of.starts_with("Mod::") || ["modifier(", "mods.get("].iter().any(|get| value.contains(get))
    });
    let special = ["special_text(", "special_by_name("].map(|call| squeezed.matches(call).count());
    calls.count() + special.iter().sum::<usize>()
}

#[test]
fn values_of_modifiers_are_asked_what_they_mean() {
    let asks = "Mod::Size.text(x) == Mod::Mem .text(y) && Mod::Size.says(z); Mod::E; kind.text(inst.modifier(kind))";
    assert_eq!(asked_texts(asks), 3);
    assert_eq!(asked_texts("self.text(token); code.text(at); special_text(target, 1)"), 1);
    let of_texts = |name: &str| OF_TEXTS.iter().any(|part| name.trim_start_matches("src/").starts_with(part));
    let files = sources().into_iter().filter(|file| !is_test(&file.0) && !of_texts(&file.0));
    let wrong: Vec<_> = files.map(|(name, text)| (name, asked_texts(&code(&text)))).filter(|file| file.1 > 0).collect();
    let hint = "answer by rows of tables/ori/values.ron, or by the constants and columns of special registers";
    assert!(wrong.is_empty(), "{hint}: {wrong:?}");
}

/// The name of a row in code.
fn camel(name: &str) -> String {
    let capital = |word: &str| word[..1].to_uppercase() + &word[1..];
    name.split('_').filter(|word| !word.is_empty()).map(capital).collect()
}

#[test]
fn what_is_asked_of_a_kind_of_modifier_has_rows() {
    let table = std::fs::read_to_string(root().join("tables/ori/values.ron")).unwrap();
    let column = |row: &str, name: &str| {
        row.split_once(&format!("{name}: \"")).and_then(|(_, r)| r.split('"').next().map(camel))
    };
    let answered: std::collections::BTreeSet<(String, String)> =
        table.lines().filter_map(|row| Some((column(row, "kind")?, column(row, "says")?))).collect();
    let (mut asked, mut wrong) = (0, Vec::new());
    for (name, text) in sources() {
        let squeezed: String = code(&text).chars().filter(|c| !c.is_whitespace()).collect();
        for part in squeezed.split("Mod::").skip(1) {
            let ident = |text: &str| text.chars().take_while(|c| c.is_alphanumeric()).collect::<String>();
            let kind = ident(part);
            let rest = &part[kind.len()..];
            // `Mod::Size.says(Says::Bytes, …)` and `inst.says(Mod::Size, Says::Bytes)`.
            let Some(rest) = rest.strip_prefix(".says(Says::").or(rest.strip_prefix(",Says::")) else { continue };
            let pair = (kind, ident(rest));
            asked += 1;
            if !answered.contains(&pair) {
                wrong.push(format!("{name}: {pair:?}"));
            }
        }
    }
    assert!(asked > 0 && wrong.is_empty(), "no rows of tables/ori/values.ron answer this: {wrong:?}");
}

#[test]
fn files_stay_readable() {
    let long: Vec<String> = sources()
        .iter()
        .map(|(name, text)| (name, text.lines().count()))
        .filter(|(_, lines)| *lines > 1000)
        .map(|(name, lines)| format!("{name}: {lines} lines"))
        .collect();
    assert!(long.is_empty(), "{}", long.join("\n"));
    let headless: Vec<String> =
        sources().iter().filter(|(_, text)| !text.starts_with("//!")).map(|(name, _)| name.clone()).collect();
    assert!(headless.is_empty(), "without a header that says what the file is for: {headless:?}");
}

#[test]
fn planned_rows_do_not_grow() {
    let mut paths = Vec::new();
    files(&root().join("tables"), "ron", &mut paths);
    let counts: Vec<String> = paths
        .iter()
        .map(|p| (p, std::fs::read_to_string(p).unwrap().matches("state: \"planned\"").count()))
        .filter(|(_, n)| *n > 0)
        .map(|(p, n)| format!("{} {n}", p.strip_prefix(root().join("tables")).unwrap().display()))
        .collect();
    let snapshot = std::fs::read_to_string(root().join("tests/planned.txt")).unwrap();
    let now = counts.join("\n") + "\n";
    assert_eq!(now, snapshot, "tests/planned.txt must name these numbers; they may only fall");
}
