"""Reports as pages that need nothing else: to be saved, printed and passed on. Figures and names, no texts of cases."""
