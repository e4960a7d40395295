// The search takes a leading dash as "without": options are found by their names, with or without dashes.
document.addEventListener(
  "input",
  (event) => {
    const field = event.target;
    if (field.matches?.(".md-search__input")) {
      const plain = field.value.replace(/(^|\s)-+(?=\w)/g, "$1");
      if (plain !== field.value) field.value = plain;
    }
  },
  true,
);
