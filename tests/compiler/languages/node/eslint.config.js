import tseslint from "typescript-eslint";

export default tseslint.config({ ignores: ["dist", "*.js"] }, ...tseslint.configs.strictTypeChecked, {
  files: ["src/**/*.ts"],
  languageOptions: { parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname } },
  rules: {
    // What a spec declares deprecated is written all the same, with a note.
    "@typescript-eslint/no-deprecated": "off",
  },
});
