"""Pictures of decision trees and of their regions."""
