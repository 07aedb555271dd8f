// What each check of the torch dialect says.
// RUN: deplo-opt --split-input-file --verify-diagnostics %s

