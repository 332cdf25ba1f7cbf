//! Laws of the PTX tables: each broken by one edit of the real tables, with the exact line that reports it.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

static FOLDERS: AtomicU32 = AtomicU32::new(0);

/// File under `tables/ptx`, what is replaced once, by what, and the first error line.
const BROKEN: [(&str, &str, &str, &str); 13] = [
    ("operations.ron", "op: \"add\"", "op: \"addd\"", "no PTX operation is called `add`"),
    (
        "operations.ron",
        "[\n",
        "[\n(op: \"x\", also: \"\", doc: \"\", src: \"x\"),\n",
        "[ptx] operation `x` has no form",
    ),
    ("operations.ron", "also: \"\"", "also: \"sub\"", "[unique] PTX operation `sub` stands for two rows"),
    ("planned.ron", "op: \"mma\"", "op: \"mad\"", "[unique] PTX operation `mad` stands for two rows"),
    (
        "groups.ron",
        "group: \"ftz\", kind: Flag",
        "group: \"ftz\", kind: Choice",
        "[ptx] group `ftz` is a Choice and has 1 texts",
    ),
    ("modifiers.ron", "group: \"ftz\"", "group: \"fz\"", "[names] no modifier group is called `fz`"),
    ("types.ron", "type: \"u8\"", "type: \"int\"", "[unique] PTX type `int` stands for two rows"),
    ("forms/logic.ron", "shift_mode\"", "shift_mod\"", "[names] no modifier group is called `shift_mod`"),
    ("forms/logic.ron", "bool_op(and|or)", "bool_op(and|nor)", "[names] group `bool_op` has no text `nor`"),
    ("forms/logic.ron", "types: \"b32\"", "types: \"b33\"", "[names] no PTX type is called `b33`"),
    ("forms/logic.ron", "dst:0", "dst:1", "[ptx] an operand has the type of a suffix that the form does not have"),
    ("forms/logic.ron", "args: \"dst:0 ", "args: \"out:0 ", "[names] no operand role is called `out`"),
    ("requirements.ron", "text: \"NaN\"", "text: \"sync\"", "[names] `min` takes no modifier `sync`"),
];

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().flatten() {
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// The error lines of the real tables with one edit.
fn broken(file: &str, from: &str, to: &str) -> String {
    let real = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tables");
    // Tests run side by side: each needs a folder of its own.
    let number = FOLDERS.fetch_add(1, Ordering::Relaxed);
    let name = format!("sassafras-ptx-laws-{}-{number}", std::process::id());
    let folder: PathBuf = std::env::temp_dir().join(name);
    copy(&real, &folder);
    let path = folder.join("ptx").join(file);
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(text.contains(from), "{file} has no {from}");
    std::fs::write(&path, text.replacen(from, to, 1)).unwrap();
    let result = sassafras_codegen::generate(&folder);
    std::fs::remove_dir_all(&folder).unwrap();
    result.err().map(|failure| failure.lines).unwrap_or_default()
}

#[test]
fn each_law_names_the_row_that_breaks_it() {
    for (file, from, to, message) in BROKEN {
        let lines = broken(file, from, to);
        let hit = lines.lines().find(|line| line.contains(message));
        let hit = hit.unwrap_or_else(|| panic!("{file}: {to}: expected `{message}`, got:\n{lines}"));
        assert!(hit.starts_with("ptx/") && hit.split(':').nth(2).is_some_and(|c| c.parse::<u32>().is_ok()), "{hit}");
    }
}

#[test]
fn two_equal_forms_are_an_error_with_both_rows() {
    let row =
        "(op: \"not\", mods: \"\", types: \"pred\", args: \"dst:0 pred\", ptx: \"1.0\", sm: 0, on: \"\", src: \"x\"),";
    let lines = broken("forms/logic.ron", "[\n", &format!("[\n{row}\n"));
    let hit = lines.lines().find(|line| line.contains("two forms of `not` are the same")).unwrap_or_default();
    assert!(hit.contains("(and ptx/forms/logic.ron:"), "{lines}");
}

#[test]
fn a_text_with_two_meanings_on_one_operation_is_an_error() {
    let lines = broken("forms/logic.ron", "mods: \"shift_direction", "mods: \"compare? mul_mode? shift_direction");
    assert!(lines.contains("[ptx] `shf` takes `.lo` as compare and as mul_mode"), "{lines}");
}
